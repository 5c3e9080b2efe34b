"""In which types, layouts and with which algorithms a model is computed."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchyard.recipe import Recipe

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """The run keys about computing, for one kind of device (``cpu`` or ``cuda``)."""

    device_type: str
    #: Type of forward and backward; None keeps that of the weights.
    compute: torch.dtype | None = None

    def autocast(self) -> AbstractContextManager[Any]:
        """Around forward and loss: automatic mixed precision."""
        return torch.autocast(self.device_type, dtype=self.compute, enabled=self.compute is not None)

    def scaler(self) -> torch.amp.GradScaler:
        """Keeps fp16's small gradients from vanishing; passes through for the other types."""
        return torch.amp.GradScaler(self.device_type, enabled=self.compute is torch.float16)


def numerics(recipe: Recipe, device: torch.device) -> Numerics:
    return Numerics(device_type=device.type, compute=_TYPES.get(recipe.precision))


def switch(recipe: Recipe) -> None:
    """Sets this process's switches; they are global in PyTorch."""
    torch.backends.cudnn.benchmark = recipe.cudnn_benchmark


def shaped(model: nn.Module, recipe: Recipe) -> nn.Module:
    """The model with the memory layout, checkpointing and compilation of the recipe."""
    return model.to(memory_format=torch.channels_last) if recipe.channels_last else model
