"""Attempts on several nodes: their parts get ready, end and fall silent one by one, and count together.

Until all parts are prepared the attempt stays ASSIGNED and no instruction of the job has run, so it can be voided by
anybody at any time. The last part to be prepared makes it STARTING, which is the word to go. From then on each part
ends by its own result or proof of death, which frees its devices; the attempt ends with the last of them. As soon as
one has failed, the others are to be killed (`orders`).
"""

from typing import Any

from sqlalchemy import Connection, Row, update

from service.db.models import Member
from service.lifecycle import gang
from service.lifecycle.devices import release
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.rows import CLAIMED, AttemptRow, JobRow, lock_attempt, member, members
from service.lifecycle.transitions import change_job, move_attempt, move_job
from torchyard.states import AttemptState, JobState
from torchyard.wire import Go, Prepared, Result, ResultKind


def prepared(tx: Connection, attempt_id: str, node: str, where: Prepared, now: int) -> Go:
    """A part is ready to start; answers whether all are. May be told any number of times.

    `Conflict` if the attempt is void or over, or the node has not claimed its part.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    part = member(tx, attempt_id, node)
    if attempt.state in CLAIMED:
        return _go(members(tx, attempt_id))
    if attempt.state != AttemptState.ASSIGNED or part.nonce is None:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: forget it")
    if part.prepared != where.model_dump():
        _set(tx, part, prepared=where.model_dump())
    everybody = members(tx, attempt_id)
    if any(one.prepared is None for one in everybody):
        return Go(go=False)
    move_attempt(tx, attempt, AttemptState.STARTING, claimed_us=now)
    go = _go(everybody)
    note = Note(kind="prepared", message=f"all {len(everybody)} nodes are ready; ranks meet at {go.address}:{go.port}")
    move_job(tx, job, JobState.STARTING, note, now)
    return go


def _go(everybody: list[Row[Any]]) -> Go:
    first = everybody[0].prepared or {}
    return Go(go=True, address=first.get("address", ""), port=first.get("port", 0))


def end(tx: Connection, job: JobRow, attempt: AttemptRow, part: Row[Any], result: Result, now: int) -> Result | None:
    """One part is over; its devices are free. The result of all when it was the last, else None."""
    if part.ended_us is not None:
        return None
    first = gang.failed(result) and not any(one.failed_us for one in members(tx, attempt.id))
    _set(tx, part, result=result.model_dump(mode="json"), ended_us=now, failed_us=now if first else None)
    release(tx, attempt.id, now, part.node)
    everybody = members(tx, attempt.id)
    if all(one.ended_us for one in everybody):
        return gang.merge([_part(one) for one in everybody])
    note = Note(kind="part-ended", message=_words(part, result, first=first), data={"node": part.node})
    settle_state(tx, job, attempt, note, now)
    return None


def _part(row: Row[Any]) -> gang.Part:
    result = Result.model_validate(row.result)
    sentenced = gang.failed(result) and row.failed_us is None and result.kind is not ResultKind.LOST
    return gang.Part(node=row.node, result=result, learnt_us=row.ended_us, sentenced=sentenced)


def _words(part: Row[Any], result: Result, *, first: bool) -> str:
    if not gang.failed(result):
        return f"node {part.node} has ended its part"
    return f"the part on node {part.node} has failed{'; the other nodes are told to end theirs' if first else ''}"


def settle_state(tx: Connection, job: JobRow, attempt: AttemptRow, note: Note, now: int) -> bool:
    """Moves job and attempt to what their parts say together, with the event; whether that was a move."""
    state = _state(job, attempt, members(tx, attempt.id))
    if state == attempt.state:
        change_job(tx, str(job.id), note, now)
        return False
    move_attempt(tx, attempt, state)
    move_job(tx, job, JobState(state.value), note, now)
    return True


def _state(job: JobRow, attempt: AttemptRow, parts: list[Row[Any]]) -> AttemptState:
    if any(one.unseen_us and one.ended_us is None for one in parts):
        return AttemptState.UNREACHABLE
    if job.stop or any(one.failed_us for one in parts):
        return AttemptState.STOPPING
    if attempt.state != AttemptState.UNREACHABLE:
        return AttemptState(attempt.state)
    return AttemptState.STARTING if attempt.started_us is None else AttemptState.RUNNING


def set_seen(tx: Connection, part: Row[Any], unseen_us: int | None) -> None:
    """Whether anybody can see the part."""
    _set(tx, part, unseen_us=unseen_us)


def _set(tx: Connection, part: Row[Any], **values: Any) -> None:
    own = (Member.attempt_id == part.attempt_id, Member.node_rank == part.node_rank)
    tx.execute(update(Member).where(*own).values(**values))
