"""Changes of one job or attempt: `move_*` to another state, `change_*` of other columns. Of many jobs: `many`.

Each is a compare-and-set: only a row that still has the state and version that were read is written, else `Conflict`;
and moves are those of the tables in `torchyard.states`. A change of a job stores its event in the same transaction.
The unit of work learns here what has to follow the commit: the job's followers wake, the scheduler looks again unless
there is `_NOTHING_TO_SCHEDULE`, and the attempt's nodes ask for orders if it `_has_new_orders`.
"""

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import Connection, Table, bindparam, update

from service.db.models import Attempt
from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord
from service.db.unit_of_work import unit_of
from service.lifecycle.ended import ended
from service.lifecycle.exceptions import Conflict, Unknown
from service.lifecycle.notes import Note, tell
from service.lifecycle.rows import CHANGED_US, JOBS, lock_job, members_of
from torchyard.ids import AttemptId, JobId, now_us
from torchyard.states import ATTEMPT_FINAL, ATTEMPT_TRANSITIONS, JOB_FINAL, JOB_TRANSITIONS, AttemptState, JobState
from torchyard.translatable import TranslatableText

# Built once, over tables: to build a statement over a mapped class costs many times what SQLite needs to run it.
_ATTEMPTS = cast("Table", Attempt.__table__)
#: A job that moves to one of these states neither frees devices nor waits for some.
_NOTHING_TO_SCHEDULE = (JobState.ASSIGNED, JobState.STARTING, JobState.RUNNING)
#: Columns that count orders to the attempt's nodes.
_ORDER_SERIALS = frozenset({"checkpoint_serial", "dump_serial"})
_COUNT_EVENT = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("job"))
    .values(last_event=JOBS.c.last_event + 1, changed_us=CHANGED_US)
    .returning(*JOBS.columns)
)
_SET_JOB = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("job"))
    .where(JOBS.c.state == bindparam("was"), JOBS.c.version == bindparam("seen"))
    .values(version=JOBS.c.version + 1, last_event=JOBS.c.last_event + 1, changed_us=CHANGED_US)
    .returning(*JOBS.columns)
)
_SET_ATTEMPT = (
    update(_ATTEMPTS)
    .where(_ATTEMPTS.c.id == bindparam("attempt_id"))
    .where(_ATTEMPTS.c.state == bindparam("was"), _ATTEMPTS.c.version == bindparam("seen"))
    .values(version=_ATTEMPTS.c.version + 1)
    .returning(*_ATTEMPTS.columns)
)


def move_job(tx: Connection, job: JobRecord, to: JobState, note: Note, now: int, **values: Any) -> JobRecord:
    """Move a job to another state, with its event; `Conflict` if the row is no longer as it was read."""
    if to not in JOB_TRANSITIONS[job.state]:
        raise Conflict(f"job {job.number} is {job.state}: it cannot become {to}")
    moved = _set_job(tx, job, note, now, state=to, **values)
    if to in JOB_FINAL:
        ended(tx, [moved], now)
    return moved


def change_job(
    tx: Connection, job_id: JobId, note: Note, now: int, *, version: int | None = None, **values: Any
) -> JobRecord:
    """Change columns of a job other than its state, with an event; `Conflict` if `version` is not its version."""
    job = lock_job(tx, job_id)
    if version is not None and version != job.version:
        raise Conflict(
            TranslatableText(
                "version-read",
                "job {number} is at version {version}, not {read}: read it again",
                number=job.number,
                version=job.version,
                read=version,
            )
        )
    return _set_job(tx, job, note, now, **values)


def move_attempt(tx: Connection, attempt: AttemptRecord, to: AttemptState, **values: Any) -> AttemptRecord:
    """Move an attempt to another state; `Conflict` if the row is no longer as it was read."""
    if to not in ATTEMPT_TRANSITIONS[attempt.state]:
        raise Conflict(f"attempt {attempt.id} is {attempt.state}: it cannot become {to}")
    return _set_attempt(tx, attempt, state=to, **values)


def change_attempt(tx: Connection, attempt: AttemptRecord, **values: Any) -> AttemptRecord:
    """Change columns of an attempt other than its state."""
    return _set_attempt(tx, attempt, **values)


def insert_event(
    tx: Connection,
    job_id: JobId,
    kind: str,
    message: str,
    *,
    actor: str | None = None,
    attempt: int | None = None,
    data: dict[str, Any] | None = None,
    now: int | None = None,
) -> int:
    """Tell of something that changed no column of the job; return the event's number within the job."""
    now = now or now_us()
    job = JobRecord.first(tx.execute(_COUNT_EVENT, {"job": job_id, "now": now}))
    if job is None:
        raise Unknown(f"there is no job {job_id}")
    tell(tx, [job], Note(kind=kind, message=message, actor=actor, data=data or {}), now, attempt)
    return job.last_event


def _set_job(tx: Connection, job: JobRecord, note: Note, now: int, **values: Any) -> JobRecord:
    expected = {"job": job.id, "was": job.state, "seen": job.version, "now": now}
    changed = JobRecord.first(tx.execute(_SET_JOB, expected | values))
    if changed is None:
        raise Conflict(TranslatableText("changed-meanwhile", "job {number} was changed meanwhile", number=job.number))
    tell(tx, [changed], note, now)
    if values.get("state") in _NOTHING_TO_SCHEDULE:
        unit_of(tx).tell("queue")
    else:
        unit_of(tx).wake_scheduler()
    return changed


def _set_attempt(tx: Connection, attempt: AttemptRecord, **values: Any) -> AttemptRecord:
    expected = {"attempt_id": attempt.id, "was": attempt.state, "seen": attempt.version}
    changed = AttemptRecord.first(tx.execute(_SET_ATTEMPT, expected | values))
    if changed is None:
        raise Conflict(f"attempt {attempt.id} was changed meanwhile")
    if _has_new_orders(attempt, values):
        nudge_members(tx, attempt.id)
    return changed


def _has_new_orders(attempt: AttemptRecord, changed: Mapping[str, Any]) -> bool:
    """Tell whether the attempt's nodes are to do something else now than they were told."""
    to = changed.get("state")
    withdrawn = attempt.state == AttemptState.ASSIGNED and to in ATTEMPT_FINAL
    return withdrawn or to == AttemptState.STOPPING or not _ORDER_SERIALS.isdisjoint(changed)


def nudge_members(tx: Connection, attempt_id: AttemptId) -> None:
    """Have all nodes of an attempt ask for their orders, once the transaction is committed."""
    unit_of(tx).nudge(*(member.node for member in members_of(tx, attempt_id)))
