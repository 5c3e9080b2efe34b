"""Models of the built-in trainer."""

from typing import Annotated, Literal

from pydantic import Field

from torchyard.recipe.base import Count, Fraction, Options, named


class DigitsCnn(Options):
    """Two convolutions and two linear layers, for small images."""

    name: Literal["digits_cnn"] = "digits_cnn"
    channels: Count = 32
    """Channels of the first convolution; the second has twice as many."""
    dropout: Fraction = 0.25


class Mlp(Options):
    """A multilayer perceptron; its input width comes from the data."""

    name: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Count, ...], Field(max_length=64)] = (256, 128)
    """Widths of the hidden layers."""
    dropout: Fraction = 0.0


ModelNoun = Annotated[DigitsCnn | Mlp, Field(discriminator="name"), named(DigitsCnn, Mlp)]
