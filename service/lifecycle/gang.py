"""Attempts on several nodes: their members get ready, end and fall silent one by one, and count together.

Until all members are prepared the attempt stays ASSIGNED and no instruction of the job has run, so it can be voided by
anybody at any time. The last member to be prepared makes it STARTING, which is the word to go. From then on each member
ends by its own result or proof of death, which frees its devices; the attempt ends with the last of them. As soon as
one has failed, the others are to be killed (`orders`).
"""

from typing import Any

from sqlalchemy import Connection, update

from service.db.models import Member
from service.db.records.attempts import AttemptRecord, MemberRecord
from service.db.records.jobs import JobRecord
from service.lifecycle import gang_result
from service.lifecycle.devices import release
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.rows import CLAIMED, lock_attempt, member_on, members_of
from service.lifecycle.transitions import change_job, move_attempt, move_job, nudge_members
from torchyard.ids import AttemptId
from torchyard.states import AttemptState, JobState
from torchyard.wire import Go, Prepared, Result, ResultKind


def prepared(tx: Connection, attempt_id: AttemptId, node: str, where: Prepared, now: int) -> Go:
    """Record that a member is ready to start; return whether all are. May be told any number of times.

    `Conflict` if the attempt is void or over, or the node has not claimed it.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    member = member_on(tx, attempt_id, node)
    if attempt.state in CLAIMED:
        return _go(members_of(tx, attempt_id))
    if attempt.state != AttemptState.ASSIGNED or member.nonce is None:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: forget it")
    if member.prepared != where:
        _set(tx, member, prepared=where.model_dump())
    everybody = members_of(tx, attempt_id)
    if any(one.prepared is None for one in everybody):
        return Go(go=False)
    move_attempt(tx, attempt, AttemptState.STARTING, claimed_us=now)
    go = _go(everybody)
    address = f"{go.address}:{go.port}"
    message = f"all {len(everybody)} nodes are ready; ranks meet at {address}"
    note = Note(kind="prepared", message=message, data={"nodes": len(everybody), "address": address})
    move_job(tx, job, JobState.STARTING, note, now)
    return go


def _go(everybody: list[MemberRecord]) -> Go:
    first = everybody[0].prepared
    return Go(go=True) if first is None else Go(go=True, address=first.address, port=first.port)


def end(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, member: MemberRecord, result: Result, now: int
) -> Result | None:
    """End one member, whose devices get free; return the result of all when it was the last, else None."""
    if member.ended_us is not None:
        return None
    first = gang_result.failed(result) and not any(one.failed_us for one in members_of(tx, attempt.id))
    _set(tx, member, result=result.model_dump(mode="json"), ended_us=now, failed_us=now if first else None)
    release(tx, attempt.id, now, member.node)
    everybody = members_of(tx, attempt.id)
    ends = [ended for one in everybody if (ended := _member_result(one)) is not None]
    if len(ends) == len(everybody):
        return gang_result.merge(ends)
    if first:
        nudge_members(tx, attempt.id)
    data = {"node": member.node, "failed": gang_result.failed(result), "first": first}
    note = Note(kind="part-ended", message=_words(member, result, first=first), data=data)
    sync_with_members(tx, job, attempt, note, now)
    return None


def _member_result(member: MemberRecord) -> gang_result.MemberResult | None:
    """Return how the member ended; None if it has not."""
    result = member.result
    if result is None or member.ended_us is None:
        return None
    sentenced = gang_result.failed(result) and member.failed_us is None and result.kind is not ResultKind.LOST
    return gang_result.MemberResult(node=member.node, result=result, learnt_us=member.ended_us, sentenced=sentenced)


def _words(member: MemberRecord, result: Result, *, first: bool) -> str:
    if not gang_result.failed(result):
        return f"node {member.node} has ended its part"
    return f"the part on node {member.node} has failed{'; the other nodes are told to end theirs' if first else ''}"


def sync_with_members(tx: Connection, job: JobRecord, attempt: AttemptRecord, note: Note, now: int) -> None:
    """Move job and attempt to the state that their members have together, if that is another; with the event."""
    state = _state(job, attempt, members_of(tx, attempt.id))
    if state == attempt.state:
        change_job(tx, job.id, note, now)
        return
    move_attempt(tx, attempt, state)
    move_job(tx, job, JobState(state.value), note, now)


def _state(job: JobRecord, attempt: AttemptRecord, members: list[MemberRecord]) -> AttemptState:
    """Return the state of an attempt whose last member has not ended: the worst that any of its members is in."""
    if any(one.unseen_us and one.ended_us is None for one in members):
        return AttemptState.UNREACHABLE
    if job.stop or any(one.failed_us for one in members):
        return AttemptState.STOPPING
    if attempt.state != AttemptState.UNREACHABLE:
        return attempt.state
    return AttemptState.STARTING if attempt.started_us is None else AttemptState.RUNNING


def set_seen(tx: Connection, member: MemberRecord, unseen_us: int | None) -> None:
    """Record since when nobody can see the member; None: somebody can."""
    _set(tx, member, unseen_us=unseen_us)


def _set(tx: Connection, member: MemberRecord, **values: Any) -> None:
    own = (Member.attempt_id == member.attempt_id, Member.node_rank == member.node_rank)
    tx.execute(update(Member).where(*own).values(**values))
