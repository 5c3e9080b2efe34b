"""One process, no communication."""

from torch import nn

from torchyard.recipe.strategies import Single
from trainer.strategies.base import Strategy


class SingleStrategy(Strategy):
    """The plain model on one device."""

    options: Single

    def wrap(self, model: nn.Module) -> nn.Module:
        return model.to(self.world.device)
