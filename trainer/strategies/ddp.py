"""DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchyard.recipe.strategies import Ddp
from trainer.distributed import World
from trainer.strategies.base import Strategy


class DdpStrategy(Strategy):
    """One process per device; every process holds the whole model."""

    def __init__(self, options: Ddp, world: World) -> None:
        super().__init__(world)
        self._options = options

    def wrap(self, model: nn.Module) -> nn.Module:
        return DistributedDataParallel(
            model,
            device_ids=[self.world.device] if self.world.device.type == "cuda" else None,
            find_unused_parameters=self._options.find_unused_parameters,
            static_graph=self._options.static_graph,
        )

    def unwrap(self, wrapped: nn.Module) -> nn.Module:
        assert isinstance(wrapped, DistributedDataParallel)
        module: nn.Module = wrapped.module
        return module

    def loss_scale(self, step_samples: int) -> float:
        # DDP divides by the number of ranks, which is right only for equal shares.
        return self.world.size / step_samples
