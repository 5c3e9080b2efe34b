"""Data sets of the built-in trainer."""

from typing import Annotated, Literal

from pydantic import Field

from torchyard.recipe.base import Count, Decay, Options, named


class Digits(Options):
    """scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels, ten classes; no download."""

    name: Literal["digits"] = "digits"
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the images kept for validation."""
    split_seed: int = 0
    """Which images those are; apart from the run's seed, so that seeds compare on the same images."""


class Synthetic(Options):
    """Noisy images around one random prototype for each class, made on the spot."""

    name: Literal["synthetic"] = "synthetic"
    samples: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    """Training samples."""
    validation_samples: Annotated[int, Field(ge=1, le=10_000_000)] = 256
    shape: Annotated[tuple[Count, ...], Field(min_length=1, max_length=4)] = (1, 8, 8)
    """Shape of one sample; an image is channels, height, width."""
    classes: Annotated[int, Field(ge=2)] = 10
    noise: Decay = 1.0
    """Standard deviation of the noise; the prototypes have 1."""


DataNoun = Annotated[Digits | Synthetic, Field(discriminator="name"), named(Digits, Synthetic)]
