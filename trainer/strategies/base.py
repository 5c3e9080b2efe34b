"""What a strategy does for the loop."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from trainer.distributed import World


class Strategy(ABC):
    """How one model is trained by several processes."""

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def wrap(self, model: nn.Module) -> nn.Module:
        """The module whose forward the loop trains, from a model on the device."""

    @abstractmethod
    def unwrap(self, wrapped: nn.Module) -> nn.Module:
        """The model itself: for evaluation, for checkpoints, without communication in its forward."""

    def loss_scale(self, step_samples: int) -> float:
        """Factor to a rank's *summed* loss that makes the gradient the exact mean over all ranks' samples."""
        return 1.0 / step_samples

    def model_state(self, wrapped: nn.Module) -> dict[str, Tensor]:
        """The whole model by the names it has alone, on the CPU; the live model stays where it is."""
        return {name: value.detach().cpu() for name, value in self.unwrap(wrapped).state_dict().items()}
