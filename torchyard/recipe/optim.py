"""Optimizers of the built-in trainer; names and defaults are PyTorch's."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from torchyard.recipe.base import Decay, Fraction, Rate, RecipeOptions, named
from torchyard.translatable import TranslatableText


class Adam(RecipeOptions):
    name: Literal["adam"] = "adam"
    """The optimizer."""
    lr: Rate = 1e-3
    """Learning rate."""
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square."""
    eps: Rate = 1e-8
    """Added to the denominator for numerical stability."""
    weight_decay: Decay = 0.0
    """Factor of the L2 penalty on the weights."""


class AdamW(RecipeOptions):
    name: Literal["adamw"] = "adamw"
    """The optimizer."""
    lr: Rate = 1e-3
    """Learning rate."""
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square."""
    eps: Rate = 1e-8
    """Added to the denominator for numerical stability."""
    weight_decay: Decay = 0.01
    """Decoupled weight decay, as a factor of the learning rate."""


class Sgd(RecipeOptions):
    name: Literal["sgd"] = "sgd"
    """The optimizer."""
    lr: Rate = 0.01
    """Learning rate."""
    momentum: Fraction = 0.9
    """Share of the last update that is kept in the next."""
    weight_decay: Decay = 0.0
    """Factor of the L2 penalty on the weights."""
    nesterov: bool = False
    """Whether the momentum is Nesterov's."""

    @model_validator(mode="after")
    def _nesterov(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError(TranslatableText("nesterov-momentum", "nesterov needs a momentum above 0"))
        return self


OptimNoun = Annotated[Adam | AdamW | Sgd, Field(discriminator="name"), named(Adam, AdamW, Sgd)]
