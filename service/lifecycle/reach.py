"""Nodes that fall silent and come back: their attempts may still be running, so they are never started twice."""

from collections.abc import Sequence

from sqlalchemy import Connection

from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord
from service.lifecycle import gang
from service.lifecycle.notes import Note
from service.lifecycle.rows import CLAIMED, attempts_on, lock_attempt, member_on, spans_nodes
from service.lifecycle.transitions import move_attempt, move_job
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState, JobState
from torchyard.wire import AttemptReport, Phase

_ELSEWHERE = (
    "node {} is worked from another machine, home or container now; the job may still be running where it was started, "
    "so it is not started again until that one returns or an administrator declares it dead"
)
_AUDIBLE = tuple(state for state in CLAIMED if state is not AttemptState.UNREACHABLE)


def set_unreachable(tx: Connection, node: str, now: int) -> list[JobId]:
    """Mark what may be running on a silent node; return the jobs' ids. Nothing is released."""
    why = f"node {node} is silent; the job may still be running there, so it is not started again"
    note = Note(kind="unreachable", message=why, data={"node": node, "elsewhere": False})
    return _lose_sight(tx, node, attempts_on(tx, node, CLAIMED), note, now)


def set_elsewhere(tx: Connection, node: str, attempts: Sequence[AttemptId], now: int) -> list[JobId]:
    """Mark attempts of a node that is worked from another machine now; return the jobs' ids. Nothing is released."""
    note = Note(kind="unreachable", message=_ELSEWHERE.format(node), data={"node": node, "elsewhere": True})
    return _lose_sight(tx, node, attempts, note, now)


def _lose_sight(tx: Connection, node: str, attempts: Sequence[AttemptId], note: Note, now: int) -> list[JobId]:
    changed = []
    for attempt_id in attempts:
        job, attempt = lock_attempt(tx, attempt_id)
        if spans_nodes(job):
            changed += _lose_member(tx, job, attempt, node, note, now)
        elif attempt.state in _AUDIBLE:
            move_attempt(tx, attempt, AttemptState.UNREACHABLE)
            move_job(tx, job, JobState.UNREACHABLE, note, now)
            changed.append(job.id)
    return changed


def _lose_member(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, node: str, note: Note, now: int
) -> list[JobId]:
    member = member_on(tx, attempt.id, node)
    if attempt.state not in CLAIMED or member.ended_us is not None or member.unseen_us is not None:
        return []
    gang.set_seen(tx, member, now)
    gang.sync_with_members(tx, job, attempt, note, now)
    return [job.id]


def set_reachable(tx: Connection, node: str, attempts: Sequence[AttemptReport], now: int) -> list[JobId]:
    """Take back what a returned node still holds; return the jobs' ids.

    An attempt that is not in the inventory stays UNREACHABLE until a result or a proof of death.
    """
    phases = {report.attempt: report.phase for report in attempts}
    note = Note(kind="reachable", message=f"node {node} is back", data={"node": node})
    changed = []
    for attempt_id in attempts_on(tx, node, (AttemptState.UNREACHABLE,)):
        if attempt_id not in phases:
            continue
        job, attempt = lock_attempt(tx, attempt_id)
        if attempt.state == AttemptState.UNREACHABLE and spans_nodes(job):
            changed += _find_member(tx, job, attempt, node, note, now)
        elif attempt.state == AttemptState.UNREACHABLE:
            state = _state_on_return(job, attempt, phases[attempt_id])
            move_attempt(tx, attempt, state)
            move_job(tx, job, JobState(state.value), note, now)
            changed.append(job.id)
    return changed


def _find_member(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, node: str, note: Note, now: int
) -> list[JobId]:
    member = member_on(tx, attempt.id, node)
    if member.unseen_us is None:
        return []
    gang.set_seen(tx, member, None)
    gang.sync_with_members(tx, job, attempt, note, now)
    return [job.id]


def _state_on_return(job: JobRecord, attempt: AttemptRecord, phase: Phase) -> AttemptState:
    if job.stop:
        return AttemptState.STOPPING
    if phase is Phase.PREPARING and attempt.started_us is None:
        return AttemptState.STARTING
    return AttemptState.RUNNING
