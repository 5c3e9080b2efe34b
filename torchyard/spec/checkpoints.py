"""Checkpoint policy, and the way a program learns of the checkpoint that it resumes from."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from torchyard.control_characters import check_name
from torchyard.quantities import Interval
from torchyard.spec.base import Model
from torchyard.translatable import TranslatableText


class KeepBest(Model):
    """The rule for the best checkpoint."""

    metric: Annotated[str, AfterValidator(check_name)]
    """Name of the metric, as passed to ``torchyard.checkpoint(metrics=…)``."""
    mode: Literal["min", "max"] = "max"
    """Whether small or large values are good."""


class CheckpointPolicy(Model):
    """The rules for when checkpoints are due and which are kept."""

    every: Interval | None = None
    """A checkpoint is due this long after the last one. Without it, a script that calls `torchyard.attach` takes its
    first one after two minutes, others as often as costs 2 % of the time at most, and one at its end; any other only
    when asked for. With `never`, all only when asked for."""
    keep_last: Annotated[int, Field(ge=1, le=1000)] = 2
    """The newest ones to keep."""
    keep_best: KeepBest | None = None
    """The best one is kept beside the newest."""


#: In `resume.args`: where the checkpoint lies.
CHECKPOINT_PLACEHOLDER = "{checkpoint}"


class Resume(Model):
    """The way in which a program is told to go on, where its framework is not known."""

    args: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    """Put behind the command of an attempt that resumes; ``{checkpoint}`` is the path of the checkpoint. Without that
    word, on one node, also where the script finds a file of its own to go on from."""

    @field_validator("args")
    @classmethod
    def _placeholders(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        for word in args:
            for found in re.findall(r"\{\w*\}", word):
                if found != CHECKPOINT_PLACEHOLDER:
                    raise ValueError(
                        TranslatableText(
                            "placeholder",
                            "{found} is no placeholder: write {placeholder}, the only one there is",
                            found=found,
                            placeholder=CHECKPOINT_PLACEHOLDER,
                        )
                    )
        return args
