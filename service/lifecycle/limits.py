"""Consequences of limits: a run that makes no step is marked and its stacks are asked for; one that waited too long is
given up.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, select

from service.db.models import Attempt, Event
from service.db.records.attempts import AttemptRecord
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.outcome import error_data
from service.lifecycle.rows import live_attempt, lock_attempt, lock_job
from service.lifecycle.transitions import change_attempt, change_job, move_job
from torchyard.api import JobError
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState, JobState
from torchyard.translatable import TranslatableText


def request_dump(tx: Connection, job_id: JobId, actor: str | None, now: int) -> int:
    """Ask for the stacks of a running job; return the order's serial. `Conflict` if nothing of it runs."""
    job = lock_job(tx, job_id)
    if job.state not in (JobState.RUNNING, JobState.STOPPING):
        raise Conflict(
            TranslatableText(
                "stacks-of-running",
                "job {number} is {state}: only a running job has stacks",
                number=job.number,
                state=job.state,
            )
        )
    serial = _ask(tx, live_attempt(tx, job))
    change_job(tx, job_id, Note(kind="stacks-requested", message="asked for its stacks", actor=actor), now)
    return serial


def mark_hung(
    tx: Connection,
    attempt_id: AttemptId,
    since_us: int,
    why: str,
    now: int,
    data: dict[str, Any] | None = None,
) -> bool:
    """Take a running attempt for hanging, and ask for its stacks; False if it is neither running nor new.

    `data` is what `why` is made of.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state != AttemptState.RUNNING or attempt.hung_us is not None:
        return False
    _ask(tx, attempt, hung_us=since_us)
    change_job(tx, job.id, Note(kind="hangs", message=why, data={"since_us": since_us, **(data or {})}), now)
    return True


def clear_hung(tx: Connection, attempt_id: AttemptId, now: int) -> bool:
    """Record that a run makes steps again; False if it was not taken for hanging."""
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.hung_us is None or attempt.state != AttemptState.RUNNING:
        return False
    change_attempt(tx, attempt, hung_us=None)
    change_job(tx, job.id, Note(kind="goes-on", message="makes steps again", data={"hung": True}), now)
    return True


def tell_idle(tx: Connection, attempt_id: AttemptId, note: Note, now: int) -> None:
    """Record that a running attempt's devices do nothing, or that they work again."""
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state == AttemptState.RUNNING:
        change_job(tx, job.id, note, now)


#: Kinds of events.
UNJOINED, JOINED = "not-joined", "joined"


def tell_joining(
    tx: Connection, unjoined: Collection[AttemptId], others: Collection[AttemptId], now: int
) -> list[JobId]:
    """Tell, once each, of running attempts no rank of which has joined a process group, and that they have after all.

    `others` are attempts of which that is not so, or no more. Returns the jobs' ids.
    """
    jobs = _tell_once(tx, unjoined, ~_told(UNJOINED), Note(kind=UNJOINED, message=_COPIES), now)
    met = _told(UNJOINED) & ~_told(JOINED)
    return jobs + _tell_once(tx, others, met, Note(kind=JOINED, message=_MET), now)


def _told(kind: str) -> ColumnElement[bool]:
    return exists().where(Event.job_id == Attempt.job_id, Event.attempt == Attempt.number, Event.kind == kind)


def _tell_once(
    tx: Connection, attempts: Collection[AttemptId], due: ColumnElement[bool], note: Note, now: int
) -> list[JobId]:
    if not attempts:
        return []
    running = (Attempt.id.in_(attempts), Attempt.state == AttemptState.RUNNING)
    query = select(Attempt.id, Attempt.job_id).where(*running, due).order_by(Attempt.job_id)
    jobs: list[JobId] = []
    for row in tx.execute(query).all():
        job, attempt = lock_attempt(tx, row.id)
        if attempt.state == AttemptState.RUNNING:
            change_job(tx, job.id, note, now)
            jobs.append(job.id)
    return jobs


_MET = "its ranks have joined a process group by now: they train together"
_COPIES = (
    "after a minute none of its ranks has joined a process group: if its script never does, each of them trains a copy "
    "of its own. Cancel it and run it with launcher: python (yard run: --launcher python), one process with all GPUs"
)


def _ask(tx: Connection, attempt: AttemptRecord, **values: int) -> int:
    serial = attempt.dump_serial + 1
    change_attempt(tx, attempt, dump_serial=serial, **values)
    return serial


def give_up(tx: Connection, job_id: JobId, error: JobError, now: int) -> bool:
    """Fail a job that could start and has never run; False if that is no longer so."""
    job = lock_job(tx, job_id)
    if job.state != JobState.QUEUED or job.started_us is not None or job.held or job.blocked:
        return False
    note = Note(kind="failed", message=error.message, data=error_data(error))
    move_job(tx, job, JobState.FAILED, note, now, error=error.model_dump(mode="json"), ended_us=now)
    return True
