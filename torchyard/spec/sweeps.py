"""The sweep of a spec: parameters and their values, one job for each combination."""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from torchyard.control_characters import check_name
from torchyard.described import Described
from torchyard.translatable import TranslatableText

Value = str | int | float | bool | None
Finite = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_name)]
MAX_TRIALS = 10_000
#: Where a trial of a command finds its values, as a JSON object.
ENVIRONMENT = "TORCHYARD_PARAMETERS"


def written(value: Value) -> str:
    """A value as it stands in an argument: texts as they are, all else as in JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _rising(ends: tuple[Any, Any]) -> tuple[Any, Any]:
    if ends[0] >= ends[1]:
        raise ValueError(
            TranslatableText(
                "rising",
                "must rise: write the smaller number first, then the larger, not {smaller}, {larger}",
                smaller=ends[0],
                larger=ends[1],
            )
        )
    return ends


def _different(values: tuple[Value, ...]) -> tuple[Value, ...]:
    seen: set[str] = set()
    for value in values:
        if (text := json.dumps(value)) in seen:
            raise ValueError(TranslatableText("listed-twice", "{text} is listed twice: keep one of them", text=text))
        seen.add(text)
    return values


Rising = AfterValidator(_rising)


class SweepModel(Described):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Range(SweepModel):
    """Whole numbers from `range[0]` to below `range[1]`, all of them."""

    range: Annotated[tuple[int, int], Rising]
    """First value, and the end, which is not one of them."""


class Uniform(SweepModel):
    """Drawn evenly between two numbers."""

    uniform: Annotated[tuple[Finite, Finite], Rising]
    """Smallest and largest value."""


class LogUniform(SweepModel):
    """Drawn so that every order of magnitude is as likely."""

    loguniform: Annotated[tuple[Annotated[Finite, Field(gt=0)], Annotated[Finite, Field(gt=0)]], Rising]
    """Smallest and largest value, above 0."""


class Integer(SweepModel):
    """A whole number drawn evenly, both ends included."""

    integer: Annotated[tuple[int, int], Rising]
    """Smallest and largest value."""


Listed = Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_TRIALS), AfterValidator(_different)]
_DRAWN: dict[str, type[SweepModel]] = {"range": Range, "uniform": Uniform, "loguniform": LogUniform, "integer": Integer}


def _form(given: Any) -> str | None:
    """Tag of the form that is meant, so that complaints are about that one."""
    if isinstance(given, list | tuple):
        return "list"
    if isinstance(given, dict):
        return next((name for name in given if name in _DRAWN), None)
    return next((name for name, kind in _DRAWN.items() if isinstance(given, kind)), None)


Values = Annotated[
    Annotated[Listed, Tag("list")]
    | Annotated[Range, Tag("range")]
    | Annotated[Uniform, Tag("uniform")]
    | Annotated[LogUniform, Tag("loguniform")]
    | Annotated[Integer, Tag("integer")],
    Discriminator(
        _form,
        custom_error_type="values",
        custom_error_message="give a list of values, or range, uniform, loguniform or integer with two numbers",
    ),
]


class EarlyStopping(SweepModel):
    """ASHA (Li et al. 2020): at each rung a trial goes on if it is among the best ``1/reduction`` that got there."""

    metric: Name
    """Name of a reported metric."""
    mode: Literal["min", "max"] = "min"
    """Whether small or large values are good."""
    first: Annotated[int, Field(ge=1)]
    """Step of the first rung."""
    reduction: Annotated[int, Field(ge=2, le=100)] = 3
    """Each rung is this many times as far as the one before, and keeps one in this many."""


class Sweep(SweepModel):
    """A grid, or random search; `{lr: [0.1, 0.01]}` alone is a grid."""

    parameters: Annotated[dict[Name, Values], Field(min_length=1, max_length=32)]
    """A path into the spec (``recipe.optim.lr``), a key of the recipe that is found only once there (``lr``), or, of a
    command, a name that stands in it in braces (``{lr}``); with a list of values or a distribution."""
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = None
    """Random search: so many draws; without it, every combination."""
    seed: int = 0
    """Of the draws."""
    running: Annotated[int, Field(ge=1)] | None = None
    """Trials that run at the same time at most."""
    stop: EarlyStopping | None = None
    """Stops trials that do worse than others."""
    pause_after: Annotated[int, Field(ge=0)] = 3
    """Pauses the sweep if its first so many ended trials all failed for the same cause; 0 never."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: Any) -> Any:
        if isinstance(given, dict) and given and "parameters" not in given:
            return {"parameters": given}
        return given

    @model_validator(mode="after")
    def _countable(self) -> Self:
        """Set a bound before anything is made: a few words must not stand for a million jobs."""
        if self.trials is None and (drawn := next((n for n, v in self.parameters.items() if count(v) is None), None)):
            raise ValueError(
                TranslatableText(
                    "drawn-by-chance",
                    "parameters.{drawn} is drawn by chance: say how often, with trials, or list its values",
                    drawn=drawn,
                )
            )
        combinations = self.combinations
        if self.trials is None and combinations is not None and combinations > MAX_TRIALS:
            raise ValueError(
                TranslatableText(
                    "many-trials",
                    "makes {combinations} trials, and {most} are the most: list fewer values, or take so many of "
                    "the combinations by chance, with trials",
                    combinations=combinations,
                    most=MAX_TRIALS,
                )
            )
        if self.trials is not None and combinations is not None and self.trials > combinations:
            raise ValueError(
                TranslatableText(
                    "few-combinations",
                    "trials is {trials}, but there are only {combinations} combinations: leave trials out to try all",
                    trials=self.trials,
                    combinations=combinations,
                )
            )
        return self

    @property
    def combinations(self) -> int | None:
        """Number of different trials that there can be; None if a parameter is drawn between two numbers."""
        product = 1
        for values in self.parameters.values():
            if (number := count(values)) is None:
                return None
            product *= number
        return product

    @property
    def size(self) -> int:
        """Number of jobs that a sweep makes."""
        return self.trials if self.trials is not None else self.combinations or 0


def count(values: Values) -> int | None:
    """Number of values to choose from; None for a distribution."""
    match values:
        case tuple():
            return len(values)
        case Range(range=(start, end)):
            return end - start
    return None
