"""Learning rate schedules of the built-in trainer; each may start with a linear warm-up."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from torchyard.recipe.base import Count, Fraction, Rate, RecipeOptions, named
from torchyard.translatable import TranslatableText


class ScheduleOptions(RecipeOptions):
    """Base of all schedules: the linear warm-up."""

    warmup: Annotated[float, Field(ge=0)] = 0.0
    """Epochs over which the rate rises linearly at the beginning."""


class Constant(ScheduleOptions):
    """The learning rate stays."""

    name: Literal["constant"] = "constant"
    """The schedule."""


class Step(ScheduleOptions):
    """The learning rate is multiplied by `gamma` every `size` epochs."""

    name: Literal["step"] = "step"
    """The schedule."""
    size: Count
    """Epochs between two changes."""
    gamma: Rate = 0.1
    """Factor of each change."""


class MultiStep(ScheduleOptions):
    """The learning rate is multiplied by `gamma` at each milestone."""

    name: Literal["multistep"] = "multistep"
    """The schedule."""
    milestones: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Epochs after which the rate changes, ascending."""
    gamma: Rate = 0.1
    """Factor of each change."""

    @field_validator("milestones")
    @classmethod
    def _ascending(cls, milestones: tuple[int, ...]) -> tuple[int, ...]:
        if any(later <= earlier for earlier, later in pairwise(milestones)):
            raise ValueError(TranslatableText("milestones", "milestones must ascend"))
        return milestones


class Cosine(ScheduleOptions):
    """The learning rate falls along half a cosine over the whole run."""

    name: Literal["cosine"] = "cosine"
    """The schedule."""
    floor: Fraction = 0.0
    """Share of the learning rate that is left at the end."""


ScheduleNoun = Annotated[
    Constant | Step | MultiStep | Cosine, Field(discriminator="name"), named(Constant, Step, MultiStep, Cosine)
]
