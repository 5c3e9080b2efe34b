"""From timings to a table: speed-up and efficiency against one process, and what cannot be right."""

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from trainer.bench.plan import Case

#: Above it a speed-up is no achievement but a mistake in the comparison.
CREDIBLE = 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured training; rates are medians over the segments."""

    strategy: str
    devices: int
    samples_per_second: float
    #: Slowest and fastest segment.
    slowest: float
    fastest: float
    #: Against one process in the same run.
    speed_up: float
    #: Speed-up for each device.
    efficiency: float
    #: The most that any rank sent to others in a step.
    bytes_per_rank: int

    @property
    def remark(self) -> str:
        """A warning where the figure is not credible."""
        if self.efficiency <= CREDIBLE:
            return ""
        return "above 100 %: the one-process run was held up, or the comparison is not fair"


def rows(measured: Sequence[tuple[Case, dict[str, Any]]]) -> list[Row]:
    """The first case is the one that the others are compared with."""
    base = _rate(measured[0][1])
    return [_row(case, result, base) for case, result in measured]


def _rate(result: dict[str, Any]) -> float:
    seconds: list[float] = result["seconds"]
    return int(result["samples"]) / statistics.median(seconds)


def _row(case: Case, result: dict[str, Any], base: float) -> Row:
    rate = _rate(result)
    return Row(
        strategy=case.strategy,
        devices=case.devices,
        samples_per_second=rate,
        slowest=result["samples"] / max(result["seconds"]),
        fastest=result["samples"] / min(result["seconds"]),
        speed_up=rate / base,
        efficiency=rate / base / case.devices,
        bytes_per_rank=max(result["bytes_sent"]),
    )


def as_csv(table: Sequence[Row]) -> str:
    """The rows with a heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*(field.name for field in fields(Row)), "remark"])
    writer.writeheader()
    writer.writerows({**asdict(row), "remark": row.remark} for row in table)
    return text.getvalue()
