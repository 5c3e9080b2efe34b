"""Early stopping at work: reads how far the trials of each sweep are, and stops those that `asha` does not keep."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from service import lifecycle
from service.context import Context
from service.db.models import Group, Job, MetricPoint, MetricSeries
from service.db.records.record import Record
from service.db.records.spec import StoredSweep
from service.jobs.groups import number
from service.sweeps import asha
from torchyard.ids import JobId
from torchyard.spec.sweeps import EarlyStopping
from torchyard.states import JobState, StopReason

_log = logging.getLogger(__name__)
_RUNNING = select(Group.id).join(Job, Job.group_id == Group.id).where(Job.state == JobState.RUNNING).distinct()


class Stopper:
    """One round a second. What is remembered of a sweep lasts as long as trials of it run."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sweeps: dict[str, _Watched | None] = {}

    def run(self) -> None:
        """Stop the running trials that are not among the best at the last rung that they have reached."""
        for group, watched in self._watched().items():
            with self._ctx.db.read() as tx:
                stops = watched.compare(tx, group)
            for stop in stops:
                self._stop(stop.trial, watched.words(stop))

    def _watched(self) -> "dict[str, _Watched]":
        with self._ctx.db.read() as tx:
            known = self._sweeps
            self._sweeps = {
                group: known[group] if group in known else _Watched.of(tx, group) for group in tx.scalars(_RUNNING)
            }
        return {group: watched for group, watched in self._sweeps.items() if watched is not None}

    def _stop(self, job: JobId, why: str) -> None:
        ctx = self._ctx
        try:
            with ctx.db.write() as tx:
                lifecycle.request_stop(tx, job, StopReason.EARLY, None, ctx.now_us(), why)
        except lifecycle.Conflict as conflict:
            _log.info("job %s was not stopped early: %s", job, conflict)


@dataclass(frozen=True, slots=True)
class _TrialSeries(Record):
    """A series of the watched metric, as one rank of one attempt of a trial reports it."""

    job_id: JobId
    id: int
    last_step: int


class _Watched:
    """A sweep with early stopping whose trials run."""

    def __init__(self, stopping: EarlyStopping) -> None:
        self._stopping = stopping
        #: The step at which each running trial has last reported the metric.
        self._steps: dict[JobId, int] = {}
        #: How many rungs each running trial had reached when the trials were last compared.
        self._reached: dict[JobId, int] = {}
        #: By series and rung; once it is there, the value never changes.
        self._values: dict[tuple[int, int], float] = {}

    @classmethod
    def of(cls, tx: Connection, group: str) -> "_Watched | None":
        stopping = StoredSweep(tx.execute(select(Group.sweep).where(Group.id == group)).scalar_one()).stop
        return None if stopping is None else cls(stopping)

    def words(self, stop: asha.EarlyStop) -> str:
        return asha.stop_message(self._stopping, stop, self._steps[stop.trial])

    def compare(self, tx: Connection, group: str) -> list[asha.EarlyStop]:
        """Return who is to be stopped, if any trial has reached another rung since the last time."""
        self._steps = _steps(tx, group, self._stopping.metric)
        reached = {job: len(asha.rungs(self._stopping, step)) for job, step in self._steps.items()}
        if reached == self._reached:
            return []
        self._reached = reached
        return asha.stops(self._stopping, self._all_values(tx, group), self._steps)

    def _all_values(self, tx: Connection, group: str) -> Mapping[JobId, Sequence[float]]:
        """Return the metric of all trials, ended ones too, at each rung that they have reached."""
        by_job: dict[JobId, list[_TrialSeries]] = {}
        for row in _series(tx, group, self._stopping):
            by_job.setdefault(row.job_id, []).append(row)
        return {job: list(self._values_of(tx, series)) for job, series in by_job.items()}

    def _values_of(self, tx: Connection, series: Sequence[_TrialSeries]) -> Iterable[float]:
        """Yield the value at each rung, of the first attempt that got there."""
        for rung in asha.rungs(self._stopping, max(row.last_step for row in series)):
            first = next(row.id for row in series if row.last_step >= rung)
            if (first, rung) not in self._values:
                value = _value_at(tx, first, rung)
                if value is None:
                    return  # its points are gone: what it did up to here still counts
                self._values[first, rung] = value
            yield self._values[first, rung]


def _steps(tx: Connection, group: str, metric: str) -> dict[JobId, int]:
    query = (
        select(MetricSeries.job_id, func.max(MetricSeries.last_step).label("step"))
        .join(Job, Job.id == MetricSeries.job_id)
        .where(Job.group_id == group, Job.state == JobState.RUNNING, MetricSeries.name == metric)
        .where(MetricSeries.last_step.is_not(None))
        .group_by(MetricSeries.job_id)
    )
    return {row.job_id: row.step for row in tx.execute(query)}


def _series(tx: Connection, group: str, stopping: EarlyStopping) -> list[_TrialSeries]:
    query = (
        select(MetricSeries.job_id, MetricSeries.id, MetricSeries.last_step)
        .join(Job, Job.id == MetricSeries.job_id)
        .where(Job.group_id == group, MetricSeries.name == stopping.metric, MetricSeries.last_step >= stopping.first)
        .order_by(MetricSeries.attempt, MetricSeries.rank)
    )
    return _TrialSeries.all(tx.execute(query))


def _value_at(tx: Connection, series: int, step: int) -> float | None:
    """Return what a series first reported at a step or after it; None if no such point is stored."""
    query = (
        select(MetricPoint.value, MetricPoint.special)
        .where(MetricPoint.series_id == series, MetricPoint.step >= step)
        .order_by(MetricPoint.seq)
        .limit(1)
    )
    row = tx.execute(query).one_or_none()
    return None if row is None else number(*row)
