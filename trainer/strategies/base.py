"""Interface between the loop and a strategy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainer import randomness
from trainer.data.loading import Batch
from trainer.data.sampler import BatchShares
from trainer.distributed.collectives import local
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.numerics.compute import Numerics
from trainer.optimization.objective import TrainingObjective
from trainer.optimization.optimizers import Parameters


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """Objective, optimizer and sizes that a strategy trains a model with."""

    objective: TrainingObjective
    make_optimizer: Callable[[Parameters], Optimizer]
    numerics: Numerics
    #: Samples of this share in a full pass; with `equal_batches` every pass has so many.
    share_size: int
    #: Shape of one sample, without the batch.
    sample_shape: tuple[int, ...]
    clip_norm: float | None = None


class Strategy(ABC):
    """A way to train one model by several devices.

    The loop calls `prepare` once, then for each pass `backward` and for each step of the optimizer `update`. The
    default methods are those of a whole model on each rank; a strategy overrides what it does otherwise.
    """

    #: Every pass must have the same number of samples on every rank, and every rank the same number of passes: some are
    #: padding, which the strategy leaves out of the loss.
    equal_batches: ClassVar[bool] = False
    #: Evaluation must have the same number of passes on every rank, of any size: each of them communicates.
    equal_passes: ClassVar[bool] = False
    #: Ranks hold different parameters: checkpoints are written by all of them.
    sharded: ClassVar[bool] = False

    #: The model itself, for checkpoints; without communication in its forward.
    model: nn.Module
    #: What is called in training; the model, or a wrapper around it.
    module: nn.Module
    #: Steps `parameters()`; for checkpoints too.
    optimizer: Optimizer
    task: TrainingTask
    #: True if the last `update` left the weights alone, because gradients overflowed in fp16.
    skipped: bool = False

    def __init__(self, options: Any, world: World) -> None:
        """Take the options; raises RecipeError where so many processes cannot train with them."""
        try:
            options.check_ranks(world.size)
        except ValueError as error:
            raise RecipeError(str(error)) from error
        self.options = options
        self.world = world
        #: Bytes that this rank has sent to others since the start, as far as the strategy can count them.
        self.bytes_sent = 0
        self.streams = randomness.RandomStreams(world.devices)

    # The layout: who takes which samples.

    @property
    def shares(self) -> BatchShares:
        """Share of each pass that this process loads."""
        return BatchShares(index=self.world.rank, count=self.world.size)

    def pass_size(self, batch_size: int) -> int:
        """Samples of all shares in one pass, when each device takes `batch_size`."""
        return batch_size * self.shares.count

    @property
    def loads(self) -> bool:
        """True if this process needs samples."""
        return True

    @property
    def counts(self) -> bool:
        """True if losses and scores of this process count; one process of each share does."""
        return True

    @property
    def chance(self) -> int:
        """Number of this process's random stream; processes that must draw alike have the same."""
        return self.world.rank

    # The life.

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        """Take a model on the CPU, the same on all ranks: place it, wrap it, make the optimizer."""
        self.task = task
        self.model = model
        self.module = self.wrap(model)
        task.numerics.change(self.called(), self.compiled())
        self.scaler = task.numerics.scaler()
        # Steps differ in size at the end of an epoch only.
        self._first_gradient = lru_cache(lambda step_size, device: torch.tensor(self.weight(step_size), device=device))
        # As a group: a stage of a pipeline may have no parameters.
        self.optimizer = task.make_optimizer([{"params": self.parameters()}])
        self.optimizer.register_step_post_hook(self._note_step)

    def _note_step(self, *_: Any) -> None:
        self.skipped = False

    def seed(self, seed: int) -> None:
        """Begin the random streams of the training, when the model is made and placed."""
        randomness.seed_all(randomness.derive(seed, "rank", self.chance))

    @abstractmethod
    def wrap(self, model: nn.Module) -> nn.Module:
        """Place the model on this process's device(s); returns the module whose forward is trained."""

    def parameters(self) -> list[nn.Parameter]:
        """Parameters that this process's optimizer steps."""
        return list(self.model.parameters())

    @property
    def averaged_over(self) -> int:
        """Ranks over whose gradients the strategy takes a plain mean; 1 when it adds them."""
        return 1

    def synchronise(self, last: bool) -> None:  # noqa: B027 (some exchange nothing in backward)
        """Prepare a pass whose backward exchanges gradients only if it is the last of a step."""

    def weight(self, step_size: int) -> float:
        """Factor to a rank's *summed* loss that makes the gradient the exact mean over the whole step's samples."""
        return self.averaged_over / step_size

    def backward(self, batch: Batch) -> Tensor:
        """Run one pass forward and back: adds to the gradients; returns the loss summed over this process's samples."""
        self.synchronise(batch.last)
        with self.task.numerics.autocast():
            loss = self.pass_loss(batch)
        # As the gradient that backward begins with, the weight costs neither a product nor its way back.
        gradient = self._first_gradient(batch.step_size, loss.device)
        self.scaler.scale(loss).backward(gradient=gradient)  # type: ignore[no-untyped-call]
        return loss.detach()

    def pass_loss(self, batch: Batch) -> Tensor:
        """Run forward; returns the loss summed over this process's samples."""
        assert batch.targets is not None
        return self.task.objective.loss(self.module(batch.inputs), batch.targets)

    def exchange(self) -> None:  # noqa: B027 (most strategies do it within backward)
        """Bring the gradients of all ranks together, after the last pass of a step."""

    def update(self, rate: float, *, measure: bool) -> Tensor | None:
        """Take one step of the optimizer; returns the norm of the gradients if it was asked for or is clipped."""
        self.exchange()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        norm, limit = None, self.task.clip_norm
        if measure or limit is not None:
            self.scaler.unscale_(self.optimizer)
            norm = self.gradient_norm()
            if limit is not None:
                self.clip(limit, norm)
        self.skipped = True
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return norm

    def gradient_norm(self) -> Tensor:
        """Return the 2-norm of all gradients together, the same on every rank."""
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        return nn.utils.get_total_norm(gradients)

    def clip(self, limit: float, norm: Tensor) -> None:
        """Scale the gradients down to the limit."""
        nn.utils.clip_grads_with_norm_(self.parameters(), limit, norm)

    def align(self) -> None:  # noqa: B027 (most ranks never drift apart)
        """Give every rank what rank 0 would save (buffers); before an evaluation or a checkpoint, on all ranks."""

    @torch.no_grad()
    def predict(self, inputs: Tensor | None) -> Any:
        """Return outputs in evaluation mode; None on a process that does not see them, or was given no samples."""
        if inputs is None:
            return None
        with self.task.numerics.autocast():
            return self.model(inputs)

    def end_evaluation(self) -> None:  # noqa: B027 (most strategies compute with the parameters themselves)
        """Give up copies of the parameters that `predict` has left, before these change; on all ranks."""

    def modules(self) -> list[nn.Module]:
        """Modules that this process holds: switched between training and evaluation, and saved."""
        return [self.model]

    def called(self) -> list[nn.Module]:
        """The modules that forward passes go through, each as a whole."""
        return self.modules()

    def compiled(self) -> list[nn.Module]:
        """Modules that are compiled, each by itself."""
        return self.called()

    @property
    def device_count(self) -> int:
        """Devices that all processes compute on."""
        return self.world.size * len(self.world.devices)

    def measures(self) -> dict[str, float]:
        """Return figures of its own for a report, since the one before; all ranks call it."""
        return {}

    # What goes into checkpoints, and what is recorded.

    def restored(self) -> None:  # noqa: B027 (most strategies hold nothing else)
        """Bring up to date what follows from the parameters, after a checkpoint was loaded or none was."""

    def saved(self) -> tuple[Any, Any]:
        """Model and optimizer for `torchyard.attach`."""
        return self.modules(), self.optimizer

    def own(self) -> dict[str, Any]:
        """Other objects with state of this rank alone, by name, for checkpoints."""
        return {"gpu_streams": self.streams} if self.streams.devices else {}

    def whole_state(self) -> dict[str, Tensor]:
        """Return the whole model by the names it has alone, on the CPU; whole on rank 0 at least. All ranks call it."""
        return {name: value.detach().cpu() for name, value in self.model.state_dict().items()}

    def proof(self) -> dict[str, Any]:
        """Return what shows that this strategy and no other is at work on this rank: sizes in bytes."""
        return {"parameter_bytes": placed([each for module in self.modules() for each in module.parameters()])}


def placed(parameters: Iterable[Tensor]) -> dict[str, int]:
    """Bytes of parameters on each device; of a DTensor, those of this rank's shard."""
    found: dict[str, int] = {}
    for parameter in parameters:
        own = local(parameter)
        found[str(own.device)] = found.get(str(own.device), 0) + own.nbytes
    return found
