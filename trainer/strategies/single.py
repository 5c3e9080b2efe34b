"""One process, no communication."""

from torch import nn

from torchyard.recipe.strategies import Single
from trainer.distributed import World
from trainer.exceptions import RecipeError
from trainer.strategies.base import Strategy


class SingleStrategy(Strategy):
    """The plain model on one device."""

    def __init__(self, options: Single, world: World) -> None:
        super().__init__(options, world)
        if world.size > 1:
            raise RecipeError(f"strategy single is one process, but {world.size} were started: take strategy: ddp")

    def wrap(self, model: nn.Module) -> nn.Module:
        return model.to(self.world.device)
