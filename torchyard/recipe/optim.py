"""Optimizers of the built-in trainer; names and defaults are PyTorch's."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from torchyard.recipe.base import Decay, Fraction, Rate, RecipeOptions, named


class Adam(RecipeOptions):
    name: Literal["adam"] = "adam"
    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    weight_decay: Decay = 0.0


class AdamW(RecipeOptions):
    name: Literal["adamw"] = "adamw"
    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    weight_decay: Decay = 0.01


class Sgd(RecipeOptions):
    name: Literal["sgd"] = "sgd"
    lr: Rate = 0.01
    momentum: Fraction = 0.9
    weight_decay: Decay = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self


OptimNoun = Annotated[Adam | AdamW | Sgd, Field(discriminator="name"), named(Adam, AdamW, Sgd)]
