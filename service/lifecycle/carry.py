"""Choice of the earlier attempt whose files the next attempt of a job begins with.

Asked only for an attempt that restores no checkpoint (`restore`). `choose` names the source of the next attempt,
`awaited` the attempts whose nodes have to keep their files for that, and `spoiled` tells at an attempt's end that the
files it began with may be what it failed of. Files are carried along a job's attempts, and into a job that goes on from
another one; never from an attempt that got nowhere with such files itself, and not from a trial that was put back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, exists, select

from service.db.models import Attempt, Job, MetricSeries
from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.lifecycle import outcome, restore
from service.lifecycle.rows import LIVE
from torchyard.failures import fingerprints, recognition
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState, JobState
from torchyard.wire import Result

_ATTEMPTS: BindParameter[Any] = bindparam("attempts", expanding=True)
_BEGINNING: Select[Any] = select(Attempt.carried_from).where(
    Attempt.carried_from.in_(_ATTEMPTS), Attempt.started_us.is_(None), Attempt.state.in_(LIVE)
)
_WAITING: Select[Any] = (
    select(Job.__table__)
    .join(Attempt, Attempt.job_id == Job.id)
    .where(Attempt.id.in_(_ATTEMPTS), Job.state == JobState.QUEUED)
)
_LAST_RUN: Select[Any] = (
    select(Attempt.id, Attempt.state, Attempt.carried_from, Attempt.saved, Attempt.result)
    .where(Attempt.job_id == bindparam("job"), Attempt.started_us.is_not(None))
    .order_by(Attempt.number.desc())
    .limit(1)
)
_STATE: Select[Any] = select(Attempt.state).where(Attempt.id == bindparam("attempt"))
_STEPPED: Select[Any] = select(
    exists().where(MetricSeries.attempt_id == bindparam("attempt"), MetricSeries.last_step.is_not(None))
)


@dataclass(frozen=True, slots=True)
class _LastRun(Record):
    """The newest attempt of a job that ran."""

    id: AttemptId
    state: AttemptState
    carried_from: AttemptId | None
    saved: bool
    result: Result | None


def choose(tx: Connection, job: JobRecord) -> AttemptId | None:
    """Return the attempt whose files the next one finds: the job's last one that ran, else the last one of the job that
    it goes on from. None: it begins with the files that it was submitted with.
    """
    if not _carries(job.spec):
        return None
    # After trials alone it begins as the first one did.
    if job.attempt_counts(job.attempt) and (last := _last_run(tx, job.id)) is not None:
        in_vain = last.carried_from is not None and _failed_by_itself(last) and _got_nowhere(tx, last)
        return None if in_vain else last.id
    source = _last_run(tx, job.carry_from) if job.carry_from else None
    return None if source is None else source.id


def awaited(tx: Connection, attempts: Sequence[AttemptId]) -> set[AttemptId]:
    """Return those of the attempts whose files an attempt begins with that has not begun or is not chosen yet."""
    if not attempts:
        return set()
    asked = {"attempts": attempts}
    found: set[AttemptId] = set(tx.scalars(_BEGINNING, asked))
    waiting = JobRecord.all(tx.execute(_WAITING, asked))
    found |= {attempt for job in waiting if restore.choose(tx, job, ()) is None and (attempt := choose(tx, job))}
    return found.intersection(attempts)


def _carries(spec: StoredSpec) -> bool:
    """Tell if files are carried: a recipe goes on from its checkpoints alone, and a live folder is as it was left."""
    return spec.carry and not spec.live and not spec.recipe


def _last_run(tx: Connection, job_id: JobId) -> _LastRun | None:
    return _LastRun.first(tx.execute(_LAST_RUN, {"job": job_id}))


def spoiled(tx: Connection, attempt: AttemptRecord) -> bool:
    """Tell whether the files that it began with may be why an attempt got nowhere: the one before got further with its
    own, or was not at fault.
    """
    if attempt.carried_from is None or not _got_nowhere(tx, attempt):
        return False
    before = tx.scalar(_STATE, {"attempt": attempt.carried_from})
    return before != AttemptState.FAILED or _stepped(tx, attempt.carried_from)


def _got_nowhere(tx: Connection, attempt: AttemptRecord | _LastRun) -> bool:
    """Tell whether an attempt neither saved anything nor made a step."""
    return not attempt.saved and not _stepped(tx, attempt.id)


def _failed_by_itself(last: _LastRun) -> bool:
    """Tell whether it failed without having been stopped, and not by a fault of the box."""
    if last.state != AttemptState.FAILED or last.result is None or last.result.stop is not None:
        return False
    return recognition.blame(outcome.cause_of(last.result)) is not fingerprints.Blame.BOX


def _stepped(tx: Connection, attempt_id: AttemptId) -> bool:
    """Tell whether an attempt has told a metric of a step."""
    return bool(tx.scalar(_STEPPED, {"attempt": attempt_id}))
