"""Reports of simulations: a table with a row for each policy, and the user who was served worst."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.simulator.metrics import SimulationMetrics, UserStanding

_DAY, _HOUR, _MINUTE = 86_400, 3600, 60


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyResult:
    """One policy's simulation."""

    title: str
    metrics: SimulationMetrics
    standings: Sequence[UserStanding]


def plain(results: Sequence[PolicyResult], *, by_user: bool = False) -> dict[str, Any]:
    """Return the figures for JSON: of one policy, or of several by their titles; `by_user` adds each user's."""
    if len(results) == 1:
        return _plain(results[0], by_user=by_user)
    return {result.title: _plain(result, by_user=by_user) for result in results}


def _plain(result: PolicyResult, *, by_user: bool) -> dict[str, Any]:
    figures = asdict(result.metrics)
    if by_user:
        figures["users"] = {
            each.user: {"gpu_seconds": each.got, "entitled": each.entitled, "mean_wait": each.mean_wait}
            for each in result.standings
        }
    return figures


def rows(results: Sequence[PolicyResult]) -> list[list[str]]:
    """Return the rows of the table, its head first."""
    times = ["mean JCT", "p50", "p99", "mean wait", "p99 wait", "slowdown"]
    head = ["policy", *times, "held", "idle", "kept", "reserved", "makespan", "Jain", "stops", "restarts", "lost"]
    return [head, *([result.title, *_cells(result.metrics)] for result in results)]


def _cells(metrics: SimulationMetrics) -> list[str]:
    times = (metrics.mean_jct, metrics.p50_jct, metrics.p99_jct, metrics.mean_wait, metrics.p99_wait)
    parts = (metrics.utilization, metrics.avoidable_idle, metrics.kept_idle, metrics.reserved_idle)
    return [
        *map(duration, times),
        f"{metrics.mean_slowdown:,.1f}",
        *(f"{100 * part:.1f} %" for part in parts),
        duration(metrics.makespan),
        f"{metrics.jain:.3f}",
        f"{metrics.preemptions:,}",
        f"{metrics.restarts:,}",
        _gpu_hours(metrics.gpu_seconds_lost),
    ]


def worst(result: PolicyResult) -> str | None:
    """Return a sentence about the user furthest below their share; None if no one is, or there is only one user."""
    lowest = min(result.standings, key=lambda standing: standing.satisfaction)
    if lowest.satisfaction > 0.995 or len(result.standings) == 1:
        return None
    part, entitled = 100 * lowest.satisfaction, lowest.entitled / _HOUR
    return f"{result.title}: {lowest.user} got {part:.0f} % of the {entitled:,.1f} GPU-hours they were entitled to"


def users(results: Sequence[PolicyResult], named: Collection[str]) -> str:
    """Return a table of the GPU time that the named users got with each policy."""
    head = ["policy", "user", "had", "entitled to", "mean wait"]
    return _columns(
        [
            head,
            *(
                [result.title, each.user, _gpu_hours(each.got), _gpu_hours(each.entitled), duration(each.mean_wait)]
                for result in results
                for each in result.standings
                if each.user in named
            ),
        ]
    )


def _gpu_hours(seconds: float) -> str:
    return f"{seconds / _HOUR:,.1f} GPU-h"


def duration(seconds: float) -> str:
    """Format a duration in at most two units: `45 s`, `12m 30s`, `3h 05m`, `2d 4h`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def table(results: Sequence[PolicyResult]) -> str:
    """Return the table as text, its columns as wide as they need to be."""
    return _columns(rows(results))


def _columns(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(_line(row, widths) for row in cells)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if not column else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
