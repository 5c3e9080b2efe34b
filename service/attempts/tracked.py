"""Metrics that a job's own trackers logged and progress that it printed, beside what it reports itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, not_, or_, select

from service.db.models import Attempt, Job, MetricSeries
from service.db.records.record import Record
from torchyard.ids import JobId
from torchyard.spec import Tracker
from torchyard.wire import Result

#: Streams of the progress that is read from what a job prints (`worker.trackers.printed`).
PRINTED_PREFIX = "printed-rank-"
_PREFIXES = (*(f"{tracker}-rank-" for tracker in Tracker), PRINTED_PREFIX)
#: Of a series: it is what the job reports itself.
REPORTED = not_(or_(*(MetricSeries.stream.startswith(prefix, autoescape=True) for prefix in _PREFIXES)))
#: Of a series: it is progress that the job printed.
PRINTED = MetricSeries.stream.startswith(PRINTED_PREFIX, autoescape=True)
_BEFORE: Select[Any] = (
    select(Attempt.result)
    .join(Job, Job.id == Attempt.job_id)
    .where(Attempt.job_id == bindparam("job"), Attempt.number > Job.restarts, Attempt.number < bindparam("before"))
    .where(Attempt.started_us.is_not(None))
)


@dataclass(frozen=True, slots=True)
class _EarlierAttempt(Record):
    """An attempt that began before another, with its result if it has one."""

    result: Result | None


def precedence(stream: str) -> int:
    """Return the rank of a stream among those with the same metric: the job's own reports first, then the trackers'."""
    return next((place for place, prefix in enumerate(_PREFIXES, 1) if stream.startswith(prefix)), 0)


def is_printed(stream: str) -> bool:
    """Tell whether a stream is progress that the job printed."""
    return stream.startswith(PRINTED_PREFIX)


def only_runs(tx: Connection, job_id: JobId, number: int) -> dict[str, str]:
    """Return the run of each tracker with which all attempts before a number logged, where they made exactly one.

    Nothing is said where an attempt is not known to have made none. Attempts that were put back do not count: Weights &
    Biases drops steps below a run's last one, and after them the job logs from its first step again.
    """
    if number == 1:
        return {}
    earlier = _EarlierAttempt.each(tx.execute(_BEFORE, {"job": job_id, "before": number}))
    results = [each.result for each in earlier]
    return _only([None if result is None else result.tracker_runs for result in results])


def _only(made: Iterable[Mapping[str, Sequence[str]] | None]) -> dict[str, str]:
    runs: dict[str, set[str]] = {}
    for each in made:
        if each is None:
            return {}
        for tracker, ids in each.items():
            runs.setdefault(tracker, set()).update(ids)
    return {tracker: ids.pop() for tracker, ids in runs.items() if len(ids) == 1}
