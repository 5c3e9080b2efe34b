"""Metrics that a job's own trackers logged, beside those that it reports itself."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, not_, or_, select

from service.db.models import Attempt, MetricSeries
from torchyard.spec import Tracker

_PREFIXES = {tracker: f"{tracker}-rank-" for tracker in Tracker}
#: Of a series: it is what the job reports itself.
REPORTED = not_(or_(*(MetricSeries.stream.startswith(prefix, autoescape=True) for prefix in _PREFIXES.values())))


def precedence(stream: str) -> int:
    """Return the rank of a stream among those with the same metric: the job's own reports first, then the trackers'."""
    return next((place for place, prefix in enumerate(_PREFIXES.values(), 1) if stream.startswith(prefix)), 0)


def only_runs(tx: Connection, job_id: str, number: int) -> dict[str, str]:
    """The run of each tracker with which all attempts before a number logged, where they made exactly one.

    Nothing is said where an attempt is not known to have made none.
    """
    query = select(Attempt.result).where(
        Attempt.job_id == job_id, Attempt.number < number, Attempt.started_us.is_not(None)
    )
    return _only([(result or {}).get("tracker_runs") for result in tx.scalars(query)])


def _only(made: Iterable[dict[str, Any] | None]) -> dict[str, str]:
    runs: dict[str, set[str]] = {}
    for each in made:
        if each is None:
            return {}
        for tracker, ids in each.items():
            runs.setdefault(tracker, set()).update(ids)
    return {tracker: ids.pop() for tracker, ids in runs.items() if len(ids) == 1}
