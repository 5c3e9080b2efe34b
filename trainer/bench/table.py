"""A table from timings: speed-up and efficiency against one process, and what cannot be right."""

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from trainer.bench.plan import BenchCase

#: Above it a speed-up is no achievement but a mistake in the comparison.
CREDIBLE = 1.0
INCREDIBLE = "above 100 %: the one-process run was held up, or the comparison is not fair"
CAVEAT = f"efficiency {INCREDIBLE}"
HEADINGS = (
    "strategy",
    "devices",
    "samples/s",
    "slowest to fastest",
    "seconds in all",
    "speed-up",
    "efficiency",
    "MiB/rank/step",
    "",
)


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One measured training; rates are medians over the segments."""

    strategy: str
    devices: int
    samples_per_second: float
    #: Slowest and fastest segment.
    slowest: float
    fastest: float
    #: Of all segments together.
    seconds: float
    #: Against one process in the same run.
    speed_up: float
    #: Speed-up for each device.
    efficiency: float
    #: The most that any rank sent to others in a step.
    bytes_per_rank: int

    @property
    def credible(self) -> bool:
        """True unless devices together do more than each of them alone."""
        return self.efficiency <= CREDIBLE

    @property
    def remark(self) -> str:
        """A warning where the figure is not credible."""
        return "" if self.credible else INCREDIBLE

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, under `HEADINGS`."""
        return (
            self.strategy,
            str(self.devices),
            f"{self.samples_per_second:,.0f}",
            f"{self.slowest:,.0f} to {self.fastest:,.0f}",
            f"{self.seconds:,.1f}",
            f"{self.speed_up:.2f}",
            f"{self.efficiency:.0%}",
            f"{self.bytes_per_rank / 2**20:.2f}",
            self.remark,
        )


def rows(measured: Sequence[tuple[BenchCase, dict[str, Any]]]) -> list[ComparisonRow]:
    """Return a row for each case; the first case is the one that the others are compared with."""
    base = statistics.median(_rates(measured[0][1]))
    return [_row(case, result, base) for case, result in measured]


def _rates(result: dict[str, Any]) -> list[float]:
    """Samples a second of each segment."""
    return [samples / seconds for samples, seconds in zip(result["samples"], result["seconds"], strict=True)]


def _row(case: BenchCase, result: dict[str, Any], base: float) -> ComparisonRow:
    rates = _rates(result)
    rate = statistics.median(rates)
    return ComparisonRow(
        strategy=case.strategy,
        devices=case.devices,
        samples_per_second=rate,
        slowest=min(rates),
        fastest=max(rates),
        seconds=sum(result["seconds"]),
        speed_up=rate / base,
        efficiency=rate / base / case.devices,
        bytes_per_rank=max(result["bytes_sent"]),
    )


def as_csv(table: Sequence[ComparisonRow]) -> str:
    """The rows with a heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*(field.name for field in fields(ComparisonRow)), "remark"])
    writer.writeheader()
    writer.writerows({**asdict(row), "remark": row.remark} for row in table)
    return text.getvalue()
