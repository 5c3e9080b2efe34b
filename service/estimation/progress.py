"""Evidence of the running time to come, read from jobs, attempts and metrics in a fixed number of queries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sqlalchemy import BindParameter, Connection, bindparam, func, select
from sqlalchemy.orm import aliased

from service.attempts import tracked
from service.db.chunks import chunks
from service.db.models import Attempt, Checkpoint, MetricPoint, MetricSeries
from service.db.records.spec import StoredSpec
from service.estimation import estimates
from service.estimation.estimates import EstimateInput, HistoryKey, StepProgress
from torchyard.ids import AttemptId, JobId
from torchyard.states import ATTEMPT_FINAL

#: Of a long file of points, those among which a moment is looked for.
MAX_POINTS = 10_000
#: Jobs and attempts that are remembered.
REMEMBERED = 200_000

#: A step and when it was reported.
Point = tuple[int, int]


class StepSpan(NamedTuple):
    """The first and the last step of an attempt, and whether they were read from what it printed."""

    first: Point
    last: Point
    printed: bool


class EstimatedJob(Protocol):
    """Columns of a job that its estimate needs: `JobRecord` has them, and so has the row that the scheduler loads."""

    @property
    def id(self) -> JobId: ...
    @property
    def project(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def spec(self) -> StoredSpec: ...
    @property
    def attempt(self) -> int: ...
    @property
    def total_steps(self) -> int | None: ...
    @property
    def restore_checkpoint(self) -> str | None: ...


class RanAttempt(NamedTuple):
    """An attempt that ran; a plain tuple, since each of the scheduler's passes reads many."""

    id: AttemptId
    job_id: JobId
    state: str
    started_us: int
    ended_us: int | None


class _StepSeries(NamedTuple):
    attempt_id: AttemptId
    series_id: int
    step: int
    time_us: int
    printed: bool = False


class _FirstPoint(NamedTuple):
    series_id: int
    step: int
    time_us: int


class ProgressReader:
    """Reads jobs as subjects of estimates, and remembers what never changes: kinds and first steps of series."""

    def __init__(self) -> None:
        self._first: dict[int, Point] = {}
        self._keys: dict[JobId, HistoryKey] = {}

    def inputs(self, tx: Connection, jobs: Sequence[EstimatedJob], now: int) -> dict[JobId, EstimateInput]:
        """Return the inputs of the jobs' estimates, by job id."""
        started = [job for job in jobs if job.attempt]
        keys = self._keys_of(jobs)
        found = {
            job.id: EstimateInput(key=keys[job.id], limit_us=job.spec.time_limit_us) for job in jobs if not job.attempt
        }
        of_jobs = _by_job(attempts(tx, [job.id for job in started]))
        spans = self._spans(tx, [each.id for of_job in of_jobs.values() for each in of_job[-2:]])
        steps = _checkpoint_steps(tx, [job.restore_checkpoint for job in started if job.restore_checkpoint])
        for job in started:
            resumes = steps.get(job.restore_checkpoint or "", 0)
            progress = _JobProgress(of_jobs.get(job.id, []), spans, resumes)
            found[job.id] = progress.given(job, keys[job.id], now)
        return found

    def _keys_of(self, jobs: Sequence[EstimatedJob]) -> Mapping[JobId, HistoryKey]:
        if len(self._keys) > REMEMBERED:
            self._keys = {}
        self._keys |= {job.id: history_key(job) for job in jobs if job.id not in self._keys}
        return self._keys

    def _spans(self, tx: Connection, attempts: Sequence[AttemptId]) -> dict[AttemptId, StepSpan]:
        """Return the spans of the attempts that have reported any step."""
        found = {row.attempt_id: row for row in _series(tx, attempts)}
        if len(self._first) > REMEMBERED:
            self._first = {}
        unknown = [row.series_id for row in found.values() if row.series_id not in self._first]
        for first in _first_points(tx, unknown):
            self._first[first.series_id] = (first.step, first.time_us)
        return {
            attempt: StepSpan(self._first[row.series_id], (row.step, row.time_us), row.printed)
            for attempt, row in found.items()
            if row.series_id in self._first
        }


def history_key(job: EstimatedJob) -> HistoryKey:
    """Return the key of the history that the job belongs to."""
    return estimates.history_key_of(job.project, job.user_id, job.spec)


_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_RAN = (
    select(Attempt.id, Attempt.job_id, Attempt.state, Attempt.started_us, Attempt.ended_us)
    .where(Attempt.started_us.is_not(None), Attempt.job_id.in_(_IDS))
    .order_by(Attempt.number)
)


def attempts(tx: Connection, jobs: Sequence[JobId]) -> list[RanAttempt]:
    """Return the attempts that ran, each job's oldest first."""
    return [RanAttempt._make(row) for row in _rows(tx, _RAN, jobs)]


def ran_us(attempts: Iterable[RanAttempt], now: int) -> int:
    """Return the microseconds that the attempts have run together."""
    return sum(max(0, (each.ended_us or now) - each.started_us) for each in attempts)


def first_steps(tx: Connection, attempts: Sequence[AttemptId]) -> dict[AttemptId, int]:
    """Return when the attempts told their first step, in microseconds; of those that have told one."""
    of_series = {row.series_id: row.attempt_id for row in _series(tx, attempts)}
    return {of_series[first.series_id]: first.time_us for first in _first_points(tx, list(of_series))}


_NEWEST_AT = (
    select(MetricPoint.step, MetricPoint.time_us)
    .where(
        MetricPoint.series_id == bindparam("series"),
        MetricPoint.seq < MAX_POINTS,
        MetricPoint.time_us <= bindparam("at_us"),
    )
    .order_by(MetricPoint.seq.desc())
    .limit(1)
)


def span_at(tx: Connection, attempt: RanAttempt, at_us: int) -> StepSpan | None:
    """Return the attempt's first step, and its newest at that moment."""
    series = next(iter(_series(tx, [attempt.id])), None)
    first = next(iter(_first_points(tx, [series.series_id])), None) if series else None
    if series is None or first is None:
        return None
    last = tx.execute(_NEWEST_AT, {"series": series.series_id, "at_us": at_us}).one_or_none()
    if last is None:
        return None
    return StepSpan((first.step, first.time_us), (last.step, last.time_us), series.printed)


def _rows(tx: Connection, query: Any, ids: Sequence[Any]) -> Iterator[Any]:
    return (row for some in chunks(ids) for row in tx.execute(query, {"ids": some}))


def _by_job(rows: Iterable[RanAttempt]) -> dict[JobId, list[RanAttempt]]:
    found: dict[JobId, list[RanAttempt]] = {}
    for row in rows:
        found.setdefault(row.job_id, []).append(row)
    return found


def _series(tx: Connection, attempts: Sequence[AttemptId]) -> list[_StepSeries]:
    """Return the steps that the attempts report; of those that report none, the progress that they print."""
    reported = _reported(tx, attempts)
    told = {row.attempt_id for row in reported}
    return [*reported, *_printed(tx, [attempt for attempt in attempts if attempt not in told])]


_PRINTED = (
    select(
        MetricSeries.attempt_id,
        MetricSeries.id,
        MetricSeries.last_step,
        MetricSeries.last_time_us,
        MetricSeries.last_value,
    )
    .where(MetricSeries.last_step.is_not(None), tracked.PRINTED, MetricSeries.attempt_id.in_(_IDS))
    .order_by(MetricSeries.last_time_us)
)
_REPORTED = (
    select(
        MetricSeries.attempt_id,
        func.min(MetricSeries.id).label("series_id"),
        func.max(MetricSeries.last_step).label("step"),
        func.max(MetricSeries.last_time_us).label("time_us"),
    )
    .where(MetricSeries.last_step.is_not(None), tracked.REPORTED, MetricSeries.attempt_id.in_(_IDS))
    .group_by(MetricSeries.attempt_id)
)


def _printed(tx: Connection, attempts: Sequence[AttemptId]) -> list[_StepSeries]:
    """Return the newest series of each attempt: an earlier one counts something else, a value that is none ends it."""
    newest = {row.attempt_id: row for row in _rows(tx, _PRINTED, attempts)}
    return [
        _StepSeries(row.attempt_id, row.id, row.last_step, row.last_time_us, printed=True)
        for row in newest.values()
        if row.last_value is not None
    ]


def _reported(tx: Connection, attempts: Sequence[AttemptId]) -> list[_StepSeries]:
    return [_StepSeries(*row) for row in _rows(tx, _REPORTED, attempts)]


_OTHER = aliased(MetricPoint)
_FIRST_SEQ = select(func.min(_OTHER.seq)).where(_OTHER.series_id == MetricSeries.id).scalar_subquery()
_FIRST_POINTS = (
    select(MetricPoint.series_id, MetricPoint.step, MetricPoint.time_us)
    .join_from(MetricSeries, MetricPoint, (MetricPoint.series_id == MetricSeries.id) & (MetricPoint.seq == _FIRST_SEQ))
    .where(MetricSeries.id.in_(_IDS))
)
_STEPS = select(Checkpoint.id, Checkpoint.step).where(Checkpoint.id.in_(_IDS))


def _first_points(tx: Connection, series: Sequence[int]) -> list[_FirstPoint]:
    return [_FirstPoint._make(row) for row in _rows(tx, _FIRST_POINTS, series)]


def _checkpoint_steps(tx: Connection, checkpoints: Sequence[str]) -> dict[str, int]:
    return dict(_rows(tx, _STEPS, checkpoints))


@dataclass(frozen=True, slots=True)
class _JobProgress:
    """A job's attempts that ran, what was watched of them, and the step that it would resume at."""

    ran: Sequence[RanAttempt]
    spans: Mapping[AttemptId, StepSpan]
    resumes: int

    @property
    def live(self) -> RanAttempt | None:
        return next((each for each in self.ran[-1:] if each.state not in ATTEMPT_FINAL), None)

    def given(self, job: EstimatedJob, key: HistoryKey, now: int) -> EstimateInput:
        return EstimateInput(
            key=key,
            limit_us=job.spec.time_limit_us,
            ran_us=ran_us(self.ran, now),
            attempt_us=max(0, now - self.live.started_us) if self.live else 0,
            progress=self.progress(job.total_steps, now) if job.total_steps else None,
        )

    def progress(self, total: int, now: int) -> StepProgress | None:
        """Return progress at the speed of the newest attempt watched for long, from where the job is or resumes."""
        told = next((each for each in self.ran[:-3:-1] if each.id in self.spans and _long(self.spans[each.id])), None)
        if told is None:
            return None
        (step0, time0), (step, time_us), printed = self.spans[told.id]
        stepping = self.spans[self.live.id].last if self.live is not None and self.live.id in self.spans else None
        at_step, at_us = stepping or (self.resumes, now)
        return StepProgress(
            steps_left=max(0, total - at_step),
            watched_steps=step - step0,
            watched_us=time_us - time0,
            silent_us=max(0, now - at_us),
            overhead_us=0 if stepping else max(0, time0 - told.started_us),
            printed=printed,
        )


def _long(span: StepSpan) -> bool:
    (step0, time0), (step, time_us), _ = span
    return step > step0 and time_us - time0 >= estimates.WATCHED_US
