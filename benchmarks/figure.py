"""What one run measures, and what several runs come to."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What was measured once; `baseline` is the same quantity of the bare thing, measured in the same run."""

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool = True
    baseline: float | None = None
    against: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A figure over all runs, as ``results.json`` has it; `met` is None where there is no target."""

    name: str
    unit: str
    median: float
    minimum: float
    maximum: float
    runs: int
    target: str = ""
    met: bool | None = None
    baseline: float | None = None
    against: str = ""


def summarise(figures: Iterable[Figure]) -> Iterator[Summary]:
    """Yield one summary for each name, in the order in which the names come first."""
    rows: dict[str, list[Figure]] = {}
    for figure in figures:
        rows.setdefault(figure.name, []).append(figure)
    yield from map(_summary, rows.values())


def _summary(measured: Sequence[Figure]) -> Summary:
    values = [figure.value for figure in measured]
    middle = sorted(measured, key=lambda figure: figure.value)[len(measured) // 2]
    return Summary(
        name=middle.name,
        unit=middle.unit,
        median=statistics.median(values),
        minimum=min(values),
        maximum=max(values),
        runs=len(measured),
        target=middle.target,
        met=middle.met if middle.target else None,
        baseline=middle.baseline,
        against=middle.against,
    )
