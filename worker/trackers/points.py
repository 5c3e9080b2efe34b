"""Types that all readers take and return."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from torchyard.numbers import INT64

#: Keys by which frameworks tell the training step beside a tracker's own counter, which counts calls.
GLOBAL_STEPS: Final = ("trainer/global_step", "train/global_step", "global_step")


class TrackerPoint(NamedTuple):
    """Values that were logged together."""

    #: Place in the source after which the next record begins.
    end: int
    step: int
    time_us: int
    values: dict[str, float]
    #: Which of the source's runs logged them, where a source holds several.
    run: str = ""
    #: By what names of that run are told apart; without one `run`.
    label: str = ""
    #: Steps of the whole run, where the source tells.
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece of a file."""

    data: bytes
    #: Where it begins in the file.
    at: int
    #: Bytes of the whole file.
    size: int
    #: Nobody writes any more.
    ended: bool = False

    @property
    def last(self) -> bool:
        """Return whether the file ends with it."""
        return self.at + len(self.data) >= self.size


@dataclass(kw_only=True)
class Read:
    """Points that a reader found, and where it goes on."""

    end: int
    points: list[TrackerPoint] = field(default_factory=list)
    #: Records that could not be read.
    skipped: int = 0


def numbers(logged: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of what was logged, by name; those in nested mappings as ``outer.inner``. Raises RecursionError."""
    return dict(_numbers(logged.items(), ""))


def _numbers(logged: Iterable[tuple[str, Any]], prefix: str) -> Iterable[tuple[str, float]]:
    for name, value in logged:
        if isinstance(value, int | float):
            yield prefix + name, as_float(value)
        elif isinstance(value, Mapping) and "_type" not in value:
            yield from _numbers(((str(key), inner) for key, inner in value.items()), f"{prefix}{name}.")


def as_float(value: float) -> float:
    """The nearest float; an integer beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def global_step(values: Mapping[str, float], counter: int) -> int:
    """The training step that a framework logged among the values, else the tracker's own counter."""
    for name in GLOBAL_STEPS:
        step = values.get(name)
        if step is not None and step == step // 1:
            return whole(step)
    return whole(counter)


def whole(number: float) -> int:
    """Return a number as an integer that every database can hold. Raises ValueError, also for infinity."""
    try:
        found = int(number)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    if found not in INT64:
        raise ValueError(f"{number} is beyond 64 bits")
    return found
