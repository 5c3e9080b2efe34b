"""Requests of people and the scheduler to a job: stop, checkpoint, hold, release."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord, StopRequest
from service.lifecycle import ended, many
from service.lifecycle.devices import release
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.rows import live_attempt, lock_job
from service.lifecycle.start import withdraw
from service.lifecycle.transitions import change_attempt, change_job, move_attempt, move_job, nudge_members
from torchyard.ids import JobId
from torchyard.states import JOB_FINAL, STOP_PRECEDENCE, AttemptState, JobState, StopReason
from torchyard.translatable import TranslatableText

_WORDS = {
    StopReason.CANCEL: "cancelled",
    StopReason.TIMEOUT: "stopped at its time limit",
    StopReason.HUNG: "stopped because it makes no step any more",
    StopReason.IDLE: "stopped at its idle limit",
    StopReason.EARLY: "stopped early: other trials of its sweep do better",
    StopReason.PREEMPT: "preempted",
    StopReason.DRAIN: "stopped because its node is draining",
}
_NEVER_STARTED = "cancelled before it started"


def request_stop(
    tx: Connection,
    job_id: JobId,
    reason: StopReason,
    actor: str | None,
    now: int,
    words: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> JobState:
    """Ask a job to stop; return the state it is in now.

    `words` say more than the reason alone; `data` are added to those of the event.

    What has not been claimed ends (or goes back to the queue) at once; what may be running is told so with the node's
    next orders. A stronger reason replaces a weaker one; asking again changes nothing. `Conflict` if the job is over
    for another reason.
    """
    job = lock_job(tx, job_id)
    state = job.state
    if state in JOB_FINAL:
        return _already_over(job, reason)
    why = words or _WORDS[reason]
    note = Note(
        kind="stop-requested",
        message=why,
        actor=actor,
        data={**(data or {}), **StopRequest(reason=reason, detail=why).model_dump(mode="json")},
    )
    match state:
        case JobState.QUEUED:
            return _cancel_waiting(tx, job, note, now) if reason is StopReason.CANCEL else state
        case JobState.ASSIGNED:
            return _stop_assigned(tx, job, live_attempt(tx, job), reason, note, now)
    if job.stop and STOP_PRECEDENCE[job.stop] >= STOP_PRECEDENCE[reason]:
        return state
    if state in (JobState.STOPPING, JobState.UNREACHABLE):
        change_job(tx, job_id, note, now, stop=reason, stop_actor=actor)
        nudge_members(tx, live_attempt(tx, job).id)
        return state
    move_attempt(tx, live_attempt(tx, job), AttemptState.STOPPING)
    move_job(tx, job, JobState.STOPPING, note, now, stop=reason, stop_actor=actor)
    return JobState.STOPPING


def cancel_waiting(tx: Connection, jobs: Sequence[JobId], actor: str | None, now: int) -> list[JobId]:
    """Cancel many queued jobs at once; return the ids of those that were queued."""
    note = Note(kind="cancelled", message=_NEVER_STARTED, actor=actor, data={"started": False})
    values = {"state": JobState.CANCELLED, "stop": StopReason.CANCEL, "stop_actor": actor, "ended_us": now}
    cancelled = many.change_waiting(tx, jobs, note, now, **values)
    ended.resolve_dependents(tx, cancelled, now)
    return cancelled


def request_checkpoint(tx: Connection, job_id: JobId, actor: str | None, now: int) -> int:
    """Ask a running job to write a checkpoint; return the order's serial. `Conflict` if it is not running."""
    job = lock_job(tx, job_id)
    if job.state != JobState.RUNNING:
        raise Conflict(
            TranslatableText(
                "checkpoint-of-running",
                "job {number} is {state}: only a running job can write a checkpoint",
                number=job.number,
                state=job.state,
            )
        )
    attempt = live_attempt(tx, job)
    change_attempt(tx, attempt, checkpoint_serial=attempt.checkpoint_serial + 1)
    change_job(tx, job_id, Note(kind="checkpoint-requested", message="asked to write a checkpoint", actor=actor), now)
    return attempt.checkpoint_serial + 1


def hold(tx: Connection, job_id: JobId, actor: str | None, now: int) -> None:
    """Keep a queued job from starting; `Conflict` if it does not wait."""
    _set_held(tx, job_id, Note(kind="held", message="held", actor=actor), now, held=True)


def release_hold(tx: Connection, job_id: JobId, actor: str | None, now: int) -> None:
    """Let a held job start again; its age counts from now. `Conflict` if it does not wait."""
    note = Note(kind="released", message="released", actor=actor)
    _set_held(tx, job_id, note, now, held=False, eligible_us=now)


def _set_held(tx: Connection, job_id: JobId, note: Note, now: int, *, held: bool, **values: int) -> None:
    job = lock_job(tx, job_id)
    if job.state != JobState.QUEUED:
        raise Conflict(
            TranslatableText(
                "hold-queued",
                "job {number} is {state}: only a queued job can be held or released",
                number=job.number,
                state=job.state,
            )
        )
    if job.held != held:
        change_job(tx, job_id, note, now, held=held, **values)


def _already_over(job: JobRecord, reason: StopReason) -> JobState:
    if reason is StopReason.CANCEL and job.state != JobState.CANCELLED:
        raise Conflict(
            TranslatableText(
                "cancel-over",
                "job {number} is over: it {state} before it could be cancelled",
                number=job.number,
                state=job.state,
            )
        )
    return job.state


def _cancel_waiting(tx: Connection, job: JobRecord, note: Note, now: int) -> JobState:
    note = Note(kind="cancelled", message=_NEVER_STARTED, actor=note.actor, data={"started": False})
    move_job(tx, job, JobState.CANCELLED, note, now, stop=StopReason.CANCEL, stop_actor=note.actor, ended_us=now)
    return JobState.CANCELLED


def _stop_assigned(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, reason: StopReason, note: Note, now: int
) -> JobState:
    if reason is not StopReason.CANCEL:
        withdraw(tx, job, attempt, note, now)
        return JobState.QUEUED
    move_attempt(tx, attempt, AttemptState.CANCELLED, ended_us=now)
    release(tx, attempt.id, now)
    return _cancel_waiting(tx, job, note, now)
