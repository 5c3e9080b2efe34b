"""The sweep of a spec: parameters and their values, one job for each combination."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Value = str | int | float | bool | None
Finite = Annotated[float, Field(allow_inf_nan=False)]
MAX_TRIALS = 10_000


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Range(Part):
    """Whole numbers from `range[0]` to below `range[1]`, all of them."""

    range: tuple[int, int]


class Uniform(Part):
    """Drawn evenly between two numbers."""

    uniform: tuple[Finite, Finite]


class LogUniform(Part):
    """Drawn so that every order of magnitude is as likely."""

    loguniform: tuple[Annotated[Finite, Field(gt=0)], Annotated[Finite, Field(gt=0)]]


class Integer(Part):
    """A whole number drawn evenly, both ends included."""

    integer: tuple[int, int]


Listed = Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_TRIALS)]
Values = Listed | Range | Uniform | LogUniform | Integer


class EarlyStopping(Part):
    """ASHA (Li et al. 2020): at each rung a trial goes on if it is among the best ``1/reduction`` that got there."""

    metric: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of a reported metric."""
    mode: Literal["min", "max"] = "min"
    """Whether small or large values are good."""
    first: Annotated[int, Field(ge=1)]
    """Step of the first rung."""
    reduction: Annotated[int, Field(ge=2, le=100)] = 3
    """Each rung is this many times as far as the one before, and keeps one in this many."""


class Sweep(Part):
    """A grid, or random search; `{lr: [0.1, 0.01]}` alone is a grid."""

    parameters: Annotated[dict[str, Values], Field(min_length=1, max_length=32)]
    """A path into the spec (``recipe.optim.lr``), a key of the recipe that is found only once there (``lr``), or, of a
    command, a name that stands in it in braces (``{lr}``); with a list of values or a distribution."""
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = None
    """Random search: so many draws; without it, every combination."""
    seed: int = 0
    """Of the draws."""
    running: Annotated[int, Field(ge=1)] | None = None
    """Trials that run at the same time at most."""
    stop: EarlyStopping | None = None
    pause_after: Annotated[int, Field(ge=0)] = 3
    """Pauses the sweep if its first so many ended trials all failed for the same cause; 0 never."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: Any) -> Any:
        if isinstance(given, dict) and given and "parameters" not in given:
            return {"parameters": given}
        return given
