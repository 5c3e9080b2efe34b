"""A pipeline: stages of layers, each on a rank, and batches cut into microbatches that follow one another through them.

Schedules of `torch.distributed.pipelining` (docs.pytorch.org, "Pipeline Parallelism"): GPipe (Huang et al. 2019), 1F1B
(PipeDream-Flush, Narayanan et al. 2021) and interleaved 1F1B with several stages on each rank (Megatron-LM, ibid.).

A rank idles while the pipeline fills and drains: of s stages and m microbatches, (s - 1) / (m + s - 1) of the time. All
schedules compute the same gradients. Batch normalisation sees microbatches, not batches, and the padding of an epoch's
last batch with them. The last stage's rank loads whole samples for the sake of their targets. Never run on two GPUs:
tested over gloo.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from torchyard.recipe.strategies import Pipeline
from trainer.data.loading import Batch
from trainer.data.sampler import BatchShares
from trainer.distributed.collectives import all_reduce_sum, gather_to_rank_0
from trainer.strategies.base import Strategy, TrainingTask
from trainer.strategies.placement import Layers, StageModule, activations, operations_of, parameter_bytes, place

_SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


@dataclass(frozen=True, kw_only=True)
class MicrobatchTarget:
    """Targets that the last stage compares a microbatch with."""

    #: (N, …) with padding.
    targets: Tensor
    #: Samples that count.
    count: int
    #: Factor of their summed loss.
    weight: float


class CountingStage(PipelineStage):
    """A pipeline stage that counts the bytes it sends, from the very tensors."""

    sent = 0

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._counted(super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._counted(super().get_bwd_send_ops(bwd_chunk_id))

    def _counted(self, operations: list[dist.P2POp]) -> list[dist.P2POp]:
        self.sent += sum(each.tensor.nbytes for each in operations)
        return operations


class AutocastStage(nn.Module):
    """A stage's layers in the recipe's types, as the pipeline calls them; the output can be sent."""

    def __init__(self, layers: StageModule, autocast: Callable[[], Any]) -> None:
        super().__init__()
        self.layers = layers
        self._autocast = autocast

    def forward(self, values: Tensor) -> Any:
        # Around the forward pass alone: backward runs in the same call of the schedule, and wants none.
        with self._autocast():
            outputs = self.layers(values)
        # In NHWC layout it could not be sent.
        return outputs.contiguous() if isinstance(outputs, Tensor) else outputs


class PipelineStrategy(Strategy):
    """Ranks hold different layers; rank r of n has stages r, r + n, …

    `model` is this rank's layers, under their names in the whole model.
    """

    equal_batches = True
    sharded = True
    options: Pipeline
    model: StageModule

    @property
    def shares(self) -> BatchShares:
        return BatchShares()

    @property
    def first(self) -> bool:
        """True if this rank has the first stage."""
        return self.world.rank == 0

    @property
    def last(self) -> bool:
        """True if this rank has the last stage."""
        return self.world.rank == self.world.size - 1

    @property
    def loads(self) -> bool:
        return self.first or self.last

    @property
    def counts(self) -> bool:
        return self.last

    @property
    def stages_per_rank(self) -> int:
        return self.options.stages_per_rank if self.options.schedule == "interleaved" else 1

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        self._names = list(model.state_dict())
        super().prepare(model, task)

    def wrap(self, model: nn.Module) -> nn.Module:
        self.stages = self.world.size * self.stages_per_rank
        sample = self.task.sample_shape
        layers_by_stage = place(model, self.stages, what="stages", balance=self.options.balance, sample=sample)
        self._operations = operations_of(layers_by_stage, sample)
        # Only these: the layers of other ranks are given up with the model.
        self.placed = {index: layers_by_stage[index] for index in range(self.world.rank, self.stages, self.world.size)}
        self.model = StageModule([layer for layers in self.placed.values() for layer in layers]).to(self.world.device)
        for layers in self.placed.values():
            _keep_inputs(layers[0][1])
        boundaries = self._boundaries(layers_by_stage)
        self.training = self._stages(boundaries)
        self._train = self._schedule(self.training, self._loss_of_microbatch)
        # Without a loss a schedule only goes forward.
        self._predict = self._schedule(self._stages(boundaries), None)
        return self.model

    def _boundaries(self, layers_by_stage: list[Layers]) -> list[Tensor]:
        """Return inputs of the first stage and outputs of each, for one microbatch; without memory."""
        size = self.task.share_size // self.options.microbatches
        inputs = torch.empty(size, *self.task.sample_shape, device="meta")
        found = activations(layers_by_stage, inputs.shape, self.world.device, self.task.numerics.autocast())
        return [inputs, *(each.requires_grad_() for each in found)]

    def _stages(self, boundaries: list[Tensor]) -> list[CountingStage]:
        return [
            CountingStage(
                AutocastStage(StageModule(layers), self.task.numerics.autocast),
                index,
                self.stages,
                self.world.device,
                input_args=boundaries[index],
                output_args=boundaries[index + 1],
            )
            for index, layers in self.placed.items()
        ]

    def _schedule(self, stages: list[CountingStage], loss: Callable[..., Tensor] | None) -> Any:
        # Our losses are sums: gradients of microbatches are added, not averaged.
        options: dict[str, Any] = {"loss_fn": loss, "scale_grads": False}
        if self.options.schedule == "interleaved":
            return ScheduleInterleaved1F1B(stages, self.options.microbatches, **options)  # type: ignore[arg-type]
        return _SINGLE[self.options.schedule](stages[0], self.options.microbatches, **options)

    def _loss_of_microbatch(self, outputs: Any, target: MicrobatchTarget) -> Tensor:
        objective = self.task.objective
        with self.task.numerics.autocast():
            loss = objective.loss(objective.trim(outputs, target.count), target.targets[: target.count])
        self._sum += loss.detach()
        return loss * target.weight

    def backward(self, batch: Batch) -> Tensor:
        self._sum = torch.zeros((), device=self.world.device)
        before = sum(stage.sent for stage in self.training)
        self._train.step(
            arg_mbs=self._inputs(batch.inputs),
            target_mbs=self._targets(batch) if self.last else None,
            return_outputs=False,
        )
        self.bytes_sent += sum(stage.sent for stage in self.training) - before
        return self._sum

    def _inputs(self, inputs: Tensor | None) -> list[tuple[Tensor]] | None:
        if not self.first or inputs is None:
            return None
        return [(each,) for each in inputs.chunk(self.options.microbatches)]

    def _targets(self, batch: Batch) -> list[MicrobatchTarget]:
        assert batch.targets is not None
        size = self.task.share_size // self.options.microbatches
        return [
            MicrobatchTarget(
                targets=each, count=min(max(batch.count - number * size, 0), size), weight=self.weight(batch.step_size)
            )
            for number, each in enumerate(batch.targets.chunk(self.options.microbatches))
        ]

    def gradient_norm(self) -> Tensor:
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        own = nn.utils.get_total_norm(gradients).to(self.world.device)
        return all_reduce_sum(own**2).sqrt()

    @torch.no_grad()
    def predict(self, inputs: Tensor | None) -> Any:
        if self.world.size == 1:
            # The interleaved schedule cannot pass activations on within a rank without a backward pass.
            return super().predict(inputs)
        return self._predict.step(arg_mbs=self._inputs(inputs))

    def called(self) -> list[nn.Module]:
        return [cast("AutocastStage", stage.submod).layers for stage in self.training]

    def whole_state(self) -> dict[str, Tensor]:
        merged: dict[str, Tensor] = {}
        for own in gather_to_rank_0(super().whole_state(), self.world):
            merged |= own
        return {name: merged[name] for name in self._names if name in merged}

    def proof(self) -> dict[str, Any]:
        return {
            **super().proof(),
            "schedule": self.options.schedule,
            "microbatches": self.options.microbatches,
            "stages": [
                {
                    "stage": stage.stage_index,
                    "of": stage.num_stages,
                    "layers": [name for name, _ in self.placed[stage.stage_index]],
                    "parameter_bytes": parameter_bytes(stage.submod),
                    "operations": self._operations[stage.stage_index],
                }
                for stage in self.training
            ],
        }


def _keep_inputs(layer: nn.Module) -> None:
    """Make the first layer of a stage leave its inputs alone: they are leaves of the stage's graph."""
    if getattr(layer, "inplace", False):
        layer.inplace = False  # type: ignore[assignment]
