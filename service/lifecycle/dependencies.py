"""Dependencies between jobs: looked up at submission, judged when one of them ends.

Only jobs that exist can be named, so no two can wait for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection, select

from service.db.chunks import chunks
from service.db.models import Group, Job
from service.db.records.record import Record
from service.errors import ProblemError, field_problem, invalid
from service.identity.callers import Caller
from service.identity.visibility import readable
from torchyard.api import FieldProblem
from torchyard.ids import JobId
from torchyard.spec import After
from torchyard.states import JOB_FINAL, JobState, StopReason
from torchyard.translatable import TranslatableText

#: Rows that one submission may add: its jobs times the jobs that each waits for.
MAX_ROWS = 200_000


class DependencyVerdict(Enum):
    """Verdict on a job that waits for others."""

    WAITS = "waits"
    MAY_START = "may start"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Needed:
    """Standing of the jobs that another one waits for."""

    open: bool
    """Some have not ended."""
    succeeded: bool
    """Some have succeeded."""
    failed: bool
    """Some have failed or were cancelled."""
    early: bool = False
    """Some were stopped early by their sweep, which does not speak against the sweep."""


def verdict(need: str, when: str, needed: Needed) -> DependencyVerdict:
    """Decide whether a job may start; `need` and `when` as in `After`."""
    good = needed.succeeded if when == "success" else needed.succeeded or needed.failed or needed.early
    bad = needed.failed and when == "success"
    if need == "any":
        return (
            DependencyVerdict.MAY_START if good else DependencyVerdict.WAITS if needed.open else DependencyVerdict.NEVER
        )
    if bad:
        return DependencyVerdict.NEVER
    return DependencyVerdict.WAITS if needed.open else DependencyVerdict.MAY_START


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The jobs that a submission waits for, and whether it must wait at all."""

    jobs: tuple[JobId, ...] = ()
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class _NeededJob(Record):
    """A job that another one waits for."""

    state: JobState
    stop: StopReason | None
    number: int

    @property
    def stopped_early(self) -> bool:
        return self.state is JobState.CANCELLED and self.stop is StopReason.EARLY


def resolve(tx: Connection, caller: Caller, after: After | None, trials: int, *, lock: bool) -> Needs:
    """Return the jobs that `after` names, a sweep standing for all its trials; only those that the caller may read.

    With `lock` none of them ends before the transaction does, so that its end finds what was stored meanwhile.
    Problems name what does not exist, what can never come, and what is too much.
    """
    if after is None:
        return Needs()
    found = {ref: _find(tx, caller, ref) for ref in after.jobs}
    if unknown := [number for number, ref in enumerate(after.jobs) if not found[ref]]:
        raise invalid([_unknown(number, after.jobs[number]) for number in unknown])
    ids = sorted({job for jobs in found.values() for job in jobs})
    if len(ids) * trials > MAX_ROWS:
        raise field_problem(
            "after",
            TranslatableText(
                "after-too-many",
                "{trials} jobs that wait for {each} each are too many: wait for one job that itself waits for them",
                trials=trials,
                each=len(ids),
            ),
        )
    rows = _states(tx, ids, lock=lock)
    match verdict(after.need, after.when, _needed(rows)):
        case DependencyVerdict.NEVER:
            raise _never(rows)
        case ruled:
            return Needs(jobs=tuple(ids), blocked=ruled is DependencyVerdict.WAITS)


def _find(tx: Connection, caller: Caller, ref: str) -> list[JobId]:
    """Return the job with this id or number, or the trials of the sweep with it."""
    number = int(ref) if ref.isascii() and ref.isdigit() and len(ref) <= 18 else None
    job, group = (table.number == number if number is not None else table.id == ref for table in (Job, Group))
    found = select(Job.id).where(readable(caller, Job))
    of_group = Job.group_id == select(Group.id).where(group).scalar_subquery()
    return list(tx.scalars(found.where(job))) or list(tx.scalars(found.where(of_group)))


def _states(tx: Connection, ids: Sequence[JobId], *, lock: bool) -> list[_NeededJob]:
    rows: list[_NeededJob] = []
    for some in chunks(ids):
        query = select(Job.state, Job.stop, Job.number).where(Job.id.in_(some)).order_by(Job.id)
        rows += _NeededJob.each(tx.execute(query.with_for_update(read=True) if lock else query))
    return rows


def _needed(rows: Sequence[_NeededJob]) -> Needed:
    states = {row.state for row in rows if not row.stopped_early}
    return Needed(
        open=bool(states - JOB_FINAL),
        succeeded=JobState.SUCCEEDED in states,
        failed=bool(states & (JOB_FINAL - {JobState.SUCCEEDED})),
        early=any(row.stopped_early for row in rows),
    )


def _unknown(number: int, ref: str) -> FieldProblem:
    message = TranslatableText(
        "after-unknown", "there is no job or sweep {ref}: take its number or id from `yard ls`", ref=ref
    )
    return FieldProblem(field=f"after.jobs.{number}", message=message)


def _never(rows: Sequence[_NeededJob]) -> ProblemError:
    row = next(row for row in rows if row.state in JOB_FINAL and row.state != JobState.SUCCEEDED)
    if row.state == JobState.FAILED:
        return field_problem(
            "after",
            TranslatableText(
                "after-failed",
                "job {number} has failed, so this one would never start: rerun that one and name the new one, say "
                "when: end, or leave after out",
                number=row.number,
            ),
        )
    return field_problem(
        "after",
        TranslatableText(
            "after-cancelled",
            "job {number} was cancelled, so this one would never start: rerun that one and name the new one, say "
            "when: end, or leave after out",
            number=row.number,
        ),
    )
