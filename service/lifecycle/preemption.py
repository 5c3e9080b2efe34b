"""A running job gives its devices to another: it is asked first, and keeps them if that comes to nothing.

The stop itself is `stop.request_stop`. What is agreed lies in the attempt
(`PendingPreemption`), so a service that is killed in between goes on where it was.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from service.db.records.attempts import PendingPreemption
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.rows import live_attempt, lock_attempt, lock_job
from service.lifecycle.stop import request_stop
from service.lifecycle.transitions import change_attempt, change_job
from torchyard.ids import AttemptId, JobId
from torchyard.states import ATTEMPT_FINAL, JobState, StopReason
from torchyard.translatable import TranslatableText


def request_preemption(
    tx: Connection, job_id: JobId, pending: PendingPreemption, note: Note, now: int, *, checkpoint: bool
) -> None:
    """Begin a preemption; with `checkpoint`, order one whose serial is kept with it.

    `Conflict` if the job does not run, is being stopped, or is being preempted already.
    """
    job = lock_job(tx, job_id)
    if job.state != JobState.RUNNING or job.stop:
        raise Conflict(
            TranslatableText(
                "preempt-running",
                "job {number} is {state}: only a running job can be preempted",
                number=job.number,
                state=job.state,
            )
        )
    attempt = live_attempt(tx, job)
    if attempt.yielding:
        raise Conflict(
            TranslatableText("preempted-already", "job {number} is being preempted already", number=job.number)
        )
    serial = attempt.checkpoint_serial + checkpoint
    agreed = pending.model_copy(update={"serial": serial if checkpoint else None})
    change_attempt(tx, attempt, checkpoint_serial=serial, yielding=agreed.model_dump(by_alias=True))
    change_job(tx, job_id, note, now)


def put_back(tx: Connection, job_id: JobId, told: Mapping[str, Any], now: int) -> None:
    """Stop a running job after its trial; it starts from the beginning in its turn, with nothing that it has left.

    `told` says for whom, as `PendingPreemption.told`.
    `Conflict` if it does not run, or is being stopped.
    """
    job = lock_job(tx, job_id)
    if job.state != JobState.RUNNING or job.stop:
        raise Conflict(f"job {job.number} is {job.state}: only a running job can be put back")
    words = f"put back for {told['preemptor']}"
    message = f"{words}: it starts from the beginning in its turn; no retry is spent"
    note = Note(kind="put-back", message=message, data=dict(told))
    change_job(tx, job_id, note, now, restarts=job.attempt)
    request_stop(tx, job_id, StopReason.PREEMPT, None, now, words, {**told, "put_back": True})


def abandon_preemption(
    tx: Connection, attempt_id: AttemptId, note: Note, spared_until_us: int | None, now: int
) -> None:
    """Give a preemption up; the attempt is not to be chosen again before `spared_until_us`.

    `Conflict` if it is over, or is being stopped for it already.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state in ATTEMPT_FINAL or job.stop == StopReason.PREEMPT or not attempt.yielding:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it is not being preempted")
    change_attempt(tx, attempt, yielding=None, spared_until_us=spared_until_us or attempt.spared_until_us)
    change_job(tx, job.id, note, now)
