"""Consequences of the end of jobs, in the transaction that ends them: for those that wait, and for a sweep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, exists, func, select
from sqlalchemy.orm import aliased

from service.db.chunks import chunks
from service.db.models import Dependency, Job
from service.db.records.jobs import JobRecord
from service.db.records.record import Record
from service.lifecycle import dependencies, many, pausing
from service.lifecycle.dependencies import DependencyVerdict, Needed
from service.lifecycle.notes import Note
from service.lifecycle.outcome import error_data
from torchyard.api import JobError
from torchyard.ids import JobId
from torchyard.states import JOB_FINAL, JobState, StopReason

_UNBLOCKED = Note(kind="unblocked", message="what it waited for has ended")
_NAMED: Select[Any] = select(Dependency.job_id).where(Dependency.needs.in_(bindparam("ended", expanding=True)))
_OTHER = aliased(Job)
_NEEDED = exists().where(Dependency.job_id == Job.id, Dependency.needs == _OTHER.id).correlate(Job)
_UNSUCCESSFUL = _OTHER.state.in_((JobState.FAILED, JobState.CANCELLED))
_EARLY = and_(_OTHER.state == JobState.CANCELLED, func.coalesce(_OTHER.stop, "") == StopReason.EARLY)


def ended(tx: Connection, jobs: Sequence[JobRecord], now: int) -> None:
    """Do what the end of jobs entails; they are given as they are now, just ended."""
    resolve_dependents(tx, [job.id for job in jobs], now)
    for group in dict.fromkeys(job.group_id for job in jobs if job.group_id and job.state == JobState.FAILED):
        pausing.after_failure(tx, group)


def resolve_dependents(tx: Connection, jobs: Sequence[JobId], now: int) -> None:
    """Let those start that waited for the jobs, and fail those that never can; then those that wait for these."""
    while jobs:
        jobs = [failed for some in chunks(jobs) for failed in _resolve(tx, some, now)]


def _resolve(tx: Connection, ended: Sequence[JobId], now: int) -> list[JobId]:
    """Unblock or fail who waits for jobs that have ended; return the jobs that have failed by it."""
    found = [
        each
        for some in chunks(_waiting(tx, ended))
        for each in _Waiting.each(tx.execute(_FACTS.where(Job.id.in_(some))))
    ]
    many.change_waiting(
        tx,
        [each.id for each in found if each.verdict is DependencyVerdict.MAY_START],
        _UNBLOCKED,
        now,
        blocked=False,
        eligible_us=now,
    )
    return list(_fail(tx, [each for each in found if each.verdict is DependencyVerdict.NEVER], now))


def _waiting(tx: Connection, ended: Sequence[JobId]) -> list[JobId]:
    """Return who waits for the jobs, locked first and judged later: of two ends at the same time one sees both."""
    # Asked by itself: nearly always it is nobody, and a database must not look through the whole queue to say so.
    named = sorted(set(tx.scalars(_NAMED, {"ended": ended})))
    return [job for some in chunks(named) for job in many.lock_waiting(tx, Job.blocked, Job.id.in_(some))]


_FACTS = select(
    Job.id,
    Job.spec[("after", "need")].as_string().label("need"),
    Job.spec[("after", "when")].as_string().label("when"),
    _NEEDED.where(_OTHER.state.not_in(JOB_FINAL)).label("open"),
    _NEEDED.where(_OTHER.state == JobState.SUCCEEDED).label("succeeded"),
    _NEEDED.where(_UNSUCCESSFUL, ~_EARLY).label("failed"),
    _NEEDED.where(_UNSUCCESSFUL, _EARLY).label("early"),
    select(func.min(_OTHER.number))
    .join(Dependency, Dependency.needs == _OTHER.id)
    .where(Dependency.job_id == Job.id, _UNSUCCESSFUL)
    .correlate(Job)
    .scalar_subquery()
    .label("culprit"),
)


@dataclass(frozen=True, slots=True)
class _Waiting(Record):
    """A job that waits for others, `need` and `when` as in `After`, and the standing of those as in `Needed`."""

    id: JobId
    need: str
    when: str
    open: bool
    succeeded: bool
    failed: bool
    early: bool
    #: Number of a job that has not succeeded.
    culprit: int | None

    @property
    def verdict(self) -> DependencyVerdict:
        needed = Needed(open=self.open, succeeded=self.succeeded, failed=self.failed, early=self.early)
        return dependencies.verdict(self.need, self.when, needed)


def _fail(tx: Connection, never: Sequence[_Waiting], now: int) -> Iterator[JobId]:
    for culprit in sorted({each.culprit for each in never if each.culprit is not None}):
        message = (
            f"job {culprit}, which it waited for, has not succeeded: rerun that one, then this one with the new one's "
            "number in after (or after: null)"
        )
        error = JobError(cause="dependency", message=message, params={"told": "advice", "job": culprit})
        yield from many.change_waiting(
            tx,
            [each.id for each in never if each.culprit == culprit],
            Note(kind="failed", message=message, data={"job": culprit, **error_data(error)}),
            now,
            state=JobState.FAILED,
            error=error.model_dump(mode="json"),
            ended_us=now,
        )
