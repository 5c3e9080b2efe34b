"""From measurements of all rounds to rows, and from rows to the tables that are printed and kept in the docs."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.results import number

PEERS = Path(__file__).parents[1] / "peers.json"
OURS = "TorchYard"
#: The row that ratios are of.
REFERENCE = "TorchYard (REST)"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A quantity of the table."""

    key: str
    title: str
    unit: str
    #: Whether more is better.
    more: bool = False


COLUMNS = (
    Column(key="submit_ms", title="submit", unit="ms"),
    Column(key="start_ms", title="submit to first instruction", unit="ms"),
    Column(key="drain_per_s", title="drain", unit="jobs/s", more=True),
    Column(key="step_ms", title="submit to first DDP step", unit="ms"),
)


@dataclass(kw_only=True)
class Measured:
    """All values of one queue; `reason` is why there are none, or why some are missing."""

    name: str
    version: str = ""
    setting: str = ""
    submit_ms: list[float] = field(default_factory=list)
    start_ms: list[float] = field(default_factory=list)
    drain_per_s: list[float] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
    reason: str = ""


def rows(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return medians, with how many values each is of, and ratios to ours; None for what was not measured."""
    medians = {each.name: _medians(each) for each in measured}
    ours = medians.get(REFERENCE, {})
    found = []
    for each in measured:
        mine = medians[each.name]
        ratios = {key: _ratio(value, ours.get(key)) for key, value in mine.items()}
        counts = {column.key: len(getattr(each, column.key)) for column in COLUMNS}
        about = {"name": each.name, "version": each.version, "setting": each.setting, "reason": each.reason}
        found.append(about | mine | {"ratios": ratios, "counts": counts})
    return found


def _medians(each: Measured) -> dict[str, float | None]:
    values: dict[str, list[float]] = {column.key: getattr(each, column.key) for column in COLUMNS}
    return {key: round(statistics.median(some), 3) if some else None for key, some in values.items()}


def _ratio(value: float | None, ours: float | None) -> float | None:
    return round(value / ours, 3) if value is not None and ours else None


def table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return the rows as they are printed."""
    shown = Table(*_headings(), title=f"x: against {REFERENCE} in the same run")
    for cells in _cells(found):
        shown.add_row(*cells)
    return shown


def markdown(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as docs/benchmarks.md has them."""
    lines = [_headings(), ["---"] * len(_headings()), *_cells(found)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _headings() -> list[str]:
    return ["queue", "version", *(f"{column.title}, {column.unit}" for column in COLUMNS), "remark"]


def _cells(found: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for row in found:
        values = [_cell(row[column.key], row["ratios"][column.key]) for column in COLUMNS]
        yield [row["name"], row["version"], *values, "; ".join(filter(None, (row["setting"], row["reason"])))]


def _cell(value: float | None, ratio: float | None) -> str:
    if value is None:
        return ""
    return number(value) if ratio is None else f"{number(value)} ({number(ratio)} x)"
