"""DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchyard.recipe.strategies import Ddp
from trainer.strategies.base import Strategy


class DdpStrategy(Strategy):
    """One process per device; every process holds the whole model."""

    options: Ddp
    module: DistributedDataParallel

    def wrap(self, model: nn.Module) -> nn.Module:
        return DistributedDataParallel(
            model.to(self.world.device),
            device_ids=[self.world.device] if self.world.device.type == "cuda" else None,
            find_unused_parameters=self.options.find_unused_parameters,
            static_graph=self.options.static_graph,
        )

    @property
    def averaged_over(self) -> int:
        return self.world.size

    def exchanging(self, last: bool) -> AbstractContextManager[Any]:
        return nullcontext() if last else self.module.no_sync()
