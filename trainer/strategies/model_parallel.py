"""Model parallelism: one model whose layers are spread over several devices of a process.

The layers are placed in order, by the bytes of their parameters or by time; activations move from device to device, and
gradients back. Only one device computes at a time: this makes room, not speed (PyTorch's tutorial "Model Parallel Best
Practices"); AlexNet was the first to need it (Krizhevsky et al. 2012). `pipeline` keeps several devices busy. With
`data_parallel: n` each of n processes has such a model, under DistributedDataParallel with `device_ids=None` ("Getting
Started with Distributed Data Parallel", on combining the two). Never run on two GPUs: tested with places on the CPU.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from torchyard.recipe.strategies import ModelParallel
from trainer.distributed.collectives import all_reduce_bytes
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.base import Strategy
from trainer.strategies.by_hand import broadcast_tensors
from trainer.strategies.ddp import bucket_bytes, fix_bucket_layout, reduce_in_backward
from trainer.strategies.placement import StageModule, operations_of, parameter_bytes, place


class SplitModel(nn.Module):
    """Stages of a model, each on its device; outputs come back to the first one, where the targets are."""

    def __init__(self, stages: Sequence[StageModule], devices: Sequence[torch.device]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stage.to(device) for stage, device in zip(stages, devices, strict=True))
        self.devices = tuple(devices)
        #: Bytes of activations handed from one place to the next, forward.
        self.moved = 0

    def forward(self, values: Any) -> Any:
        for number, (stage, device) in enumerate(zip(self.stages, self.devices, strict=True)):
            if number:
                self.moved += values.nbytes
            values = stage(values.to(device, non_blocking=True))
        return _moved(values, self.devices[0])


def _moved(outputs: Any, device: torch.device) -> Any:
    if isinstance(outputs, Mapping):
        return {name: output.to(device) for name, output in outputs.items()}
    return outputs.to(device)


class ModelParallelStrategy(Strategy):
    """One process for each replica; a replica's layers lie on the process's devices."""

    options: ModelParallel

    def __init__(self, options: ModelParallel, world: World) -> None:
        super().__init__(options, world)
        if len(world.devices) < 2:
            raise RecipeError("strategy model_parallel needs two devices in a process: take strategy: single or ddp")

    def wrap(self, model: nn.Module) -> nn.Module:
        sample = self.task.sample_shape
        placed = place(model, len(self.world.devices), what="devices", balance=self.options.balance, sample=sample)
        self._operations = operations_of(placed, sample)
        self.split = SplitModel([StageModule(layers) for layers in placed], self.world.devices)
        if self.world.size == 1:
            return self.split  # with a single replica there is nobody to talk to
        wrapped = DistributedDataParallel(self.split, device_ids=None)
        fix_bucket_layout(wrapped)
        self._reduced = all_reduce_bytes(sum(bucket_bytes(wrapped)), self.world.size)
        return wrapped

    @property
    def averaged_over(self) -> int:
        return self.world.size

    def synchronise(self, last: bool) -> None:
        if isinstance(self.module, DistributedDataParallel):
            reduce_in_backward(self.module, last)

    def exchange(self) -> None:
        if isinstance(self.module, DistributedDataParallel):
            self.bytes_sent += self._reduced

    def align(self) -> None:
        if self.world.size > 1:
            for stage in self.split.stages:
                broadcast_tensors(stage.buffers())

    @torch.no_grad()
    def predict(self, inputs: Tensor | None) -> Any:
        with self.task.numerics.autocast():
            return self.split(inputs)

    def called(self) -> list[nn.Module]:
        return list(self.split.stages)

    def proof(self) -> dict[str, Any]:
        return {
            **super().proof(),
            "replica": self.world.rank,
            "replicas": self.world.size,
            "places": [
                {
                    "place": number,
                    "device": str(device),
                    "layers": stage.names,
                    "parameter_bytes": parameter_bytes(stage),
                    "operations": self._operations[number],
                }
                for number, (stage, device) in enumerate(zip(self.split.stages, self.split.devices, strict=True))
            ],
            "activation_bytes_moved": self.split.moved,
        }
