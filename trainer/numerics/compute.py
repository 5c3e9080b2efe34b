"""Types, memory layouts and algorithms that a model is computed with."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchyard.recipe import Recipe
from trainer.numerics.activation_checkpointing import recompute

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: What `torch.compile` hands graphs to.
BACKEND: str | Callable[..., Any] = "inductor"


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """The run keys about computing, for one kind of device (``cpu`` or ``cuda``)."""

    device_type: str
    #: Type of forward and backward; None keeps that of the weights.
    compute: torch.dtype | None = None
    compile: bool = False
    activation_checkpointing: bool = False

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context for forward and loss: automatic mixed precision (Micikevicius et al. 2018)."""
        return nullcontext() if self.compute is None else torch.autocast(self.device_type, dtype=self.compute)

    def scaler(self) -> torch.amp.GradScaler:
        """Return what keeps fp16's small gradients from vanishing; passes through for the other types."""
        return torch.amp.GradScaler(self.device_type, enabled=self.compute is torch.float16)

    def change(self, modules: Iterable[nn.Module], compiled: Iterable[nn.Module]) -> None:
        """Apply activation checkpointing and compilation to modules, as the recipe says; in place, names stay.

        Raises RecipeError for modules without layers or blocks whose activations could be dropped.
        """
        if self.activation_checkpointing:
            recompute(modules)
        if self.compile:
            for module in compiled:
                # Not the whole call: hooks of FSDP around it gather parameters, which no graph can hold.
                module.forward = torch.compile(module.forward, backend=BACKEND)


def numerics_for(recipe: Recipe, device: torch.device) -> Numerics:
    return Numerics(
        device_type=device.type,
        compute=_TYPES.get(recipe.precision),
        compile=recipe.compile,
        activation_checkpointing=recipe.activation_checkpointing,
    )


def switch(recipe: Recipe) -> None:
    """Set this process's switches, which are global in PyTorch; before the first product on a GPU.

    Source: https://docs.pytorch.org/docs/stable/notes/randomness.html. With `deterministic`, an operation that has no
    such algorithm raises RuntimeError, which names it.
    """
    if recipe.deterministic:
        # cuBLAS reads it when it starts.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(recipe.deterministic)
    torch.backends.cudnn.deterministic = recipe.deterministic
    torch.backends.cudnn.benchmark = recipe.cudnn_benchmark
    torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = recipe.tf32


def shaped(model: nn.Module, recipe: Recipe) -> nn.Module:
    """Return the model with the memory layout of the recipe."""
    return model.to(memory_format=torch.channels_last) if recipe.channels_last else model
