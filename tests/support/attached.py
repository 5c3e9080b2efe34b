"""Tiny trainings that follow `torchyard.attach`, alone or on the ranks of `tests.support.ranks`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import torchyard
from tests.support.attempt import AttemptFolder
from torchyard.injob import gloo

SAMPLES = 44
BATCH_SIZE = 4
EPOCHS = 2


class Seen(Dataset[tuple[Tensor, Tensor]]):
    """Remembers which samples were loaded in this process."""

    def __init__(self, samples: int = SAMPLES) -> None:
        chance = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(samples, 6, generator=chance)
        self.targets = torch.randn(samples, 4, generator=chance)
        self.loaded: list[int] = []

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.loaded.append(index)
        return self.inputs[index], self.targets[index]


def bare() -> nn.Sequential:
    """The model as it is alone."""
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 4))


def fsdp(model: nn.Sequential) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    for layer in (model[0], model[3]):
        fully_shard(layer)
    return fully_shard(model)


WRAPPERS: dict[str, Callable[[nn.Sequential], nn.Module]] = {
    "bare": lambda model: model,
    "ddp": nn.parallel.DistributedDataParallel,
    "fsdp": fsdp,
}


class Training:
    """Two batches make a step of the optimizer; the last of an epoch may have one."""

    def __init__(
        self,
        wrapper: str = "bare",
        *,
        loader: DataLoader[Any] | None = None,
        each_batch: bool = False,
        **options: Any,
    ) -> None:
        self.each_batch = each_batch
        torch.manual_seed(3)
        self.model = WRAPPERS[wrapper](bare())
        # The ranks' dropout differs.
        torch.manual_seed(10 + (dist.get_rank() if dist.is_initialized() else 0))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.data = Seen()
        self.loader = loader or DataLoader(
            self.data, batch_size=BATCH_SIZE, sampler=DistributedSampler(self.data, seed=2)
        )
        self.run = torchyard.attach(model=self.model, optimizer=self.optimizer, loader=self.loader, **options)

    def train(self, until: int | None = None, epochs: int = EPOCHS) -> "Training":
        """Goes on until a step is done, or to the end."""
        for _ in self.run.epochs(epochs):
            for number, (inputs, targets) in enumerate(self.loader, start=self.run.batch + 1):
                loss = (self.model(inputs) - targets).square().mean()
                loss.backward()
                stepped = number % 2 == 0 or number == len(self.loader)
                if stepped:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                if stepped or self.each_batch:
                    self.run.report(loss=loss)
                    if self.run.step == until:
                        return self
        return self

    def saved(self, folder: Path) -> Path:
        """A checkpoint of now, below the folder that is the working directory."""
        self.run.save()
        self.run.finish()
        return folder / f"checkpoints/step-{self.run.step:09d}"

    def weights(self) -> dict[str, Tensor]:
        """Whole parameters by their names."""
        return {
            name: (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().clone()
            for name, value in self.model.state_dict().items()
        }


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether all bits are equal."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@contextmanager
def joined() -> Iterator[None]:
    """A gloo group of the ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    yield
    dist.barrier()
    dist.destroy_process_group()


def stopped_at_every_step(wrapper: str, folder: Path, each_batch: bool = False) -> list[int]:
    """Steps after which a training that stopped and went on ended otherwise than one that never stopped."""
    with joined():
        whole = Training(wrapper, each_batch=each_batch).train()
        return [step for step in range(1, whole.run.step) if not _goes_on(wrapper, folder, step, whole)]


def _goes_on(wrapper: str, folder: Path, step: int, whole: Training) -> bool:
    checkpoint = Training(wrapper, each_batch=whole.each_batch).train(until=step).saved(folder)
    resumed = Training(wrapper, each_batch=whole.each_batch, restore=checkpoint).train()
    return resumed.run.inexact is None and same(resumed.weights(), whole.weights())


def stopped(wrapper: str, folder: Path, step: int) -> tuple[Path, dict[str, Tensor], list[int]]:
    """A checkpoint after a step, the weights in it, and the samples that this rank has taken in the epoch."""
    with joined():
        training = Training(wrapper).train(until=step)
        return training.saved(folder), training.weights(), training.data.loaded


def went_on(wrapper: str, checkpoint: Path) -> tuple[dict[str, Tensor], list[int], str | None]:
    """The weights as they were loaded, the samples of this rank in the rest of the epoch, and what is not exact."""
    with joined():
        training = Training(wrapper, restore=checkpoint)
        loaded = training.weights()
        training.train(epochs=1)
        return loaded, training.data.loaded, training.run.inexact


class Heavy:
    """State of one rank's own that is larger than its disk."""

    def state_dict(self) -> dict[str, Any]:
        return {"bytes": torch.zeros((6 if dist.get_rank() == 1 else 0) << 20, dtype=torch.uint8)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError


def one_cannot_write(wrapper: str, attempt: Path) -> list[list[str]]:
    """What checkpoints there are after one, then one that rank 1 has no room for, then another one."""
    with joined():
        light, heavy = Training(wrapper), Training(wrapper, ranks={"heavy": Heavy()})
        left = []
        for step, training in enumerate((light, heavy, light), start=1):
            training.run.step = step
            training.run.save()
            training.run.finish()
            dist.barrier()
            left.append(sorted(path.name for path in (attempt / "job/checkpoints").iterdir()))
            dist.barrier()
        return left


def stopped_when_asked(attempt: Path) -> None:
    """Rank 0 asks for a stop; never comes back from it."""
    with joined():
        training = Training("ddp")
        for _ in training.run.epochs(1_000_000):
            for inputs, targets in training.loader:
                (training.model(inputs) - targets).square().mean().backward()
                training.optimizer.step()
                training.optimizer.zero_grad()
                training.run.report()
                if training.run.step == 20 and dist.get_rank() == 0:
                    AttemptFolder(attempt).ask("stop")


def stages_of(names: list[list[str]]) -> list[nn.Sequential]:
    """Stages of `bare`, each with some of its layers under the names that they have there."""
    torch.manual_seed(3)
    layers = dict(bare().named_children())
    stages = [nn.Sequential() for _ in names]
    for stage, its in zip(stages, names, strict=True):
        for name in its:
            stage.add_module(name, layers[name])
    return stages


def pipelined(names: list[list[list[str]]], restore: Path | None) -> tuple[Path, dict[str, Tensor], dict[str, Any]]:
    """Each rank has its stages: their weights and Adam's state after a step, or as they were loaded."""
    with joined():
        stages = stages_of(names[dist.get_rank()])
        parameters = [parameter for stage in stages for parameter in stage.parameters()]
        groups = [{"params": [each], "lr": 0.1 * (1 + each.dim())} for each in parameters]
        optimizer = torch.optim.Adam(groups if restore is None else parameters, lr=0.5)
        run = torchyard.attach(model=stages, optimizer=optimizer, sharded=True, restore=restore)
        if restore is None:
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, float(parameter.numel()))
            optimizer.step()
            run.save()
            run.finish()
        named = {name: each for stage in stages for name, each in stage.named_parameters()}
        rates = {id(each): group["lr"] for group in optimizer.param_groups for each in group["params"]}
        state = {name: (optimizer.state[each]["exp_avg"], rates[id(each)]) for name, each in named.items()}
        return Path.cwd() / "checkpoints/step-000000000", {name: each.detach() for name, each in named.items()}, state


def waits_at_exit() -> list[bool]:
    """Whether the process is to wait for gloo's threads: once it attaches, without a process group and with one."""
    asked: list[bool] = []
    gloo.finish_at_exit = lambda: asked.append(True)
    torchyard.attach(model=nn.Linear(1, 1))
    alone = bool(asked)
    dist.init_process_group()
    torchyard.attach(model=nn.Linear(1, 1))
    return [alone, bool(asked)]
