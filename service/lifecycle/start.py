"""Start of an attempt, from the queue to the first instruction: assign, claim, running; and void when nobody claims."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, insert, select, update

from service.db.models import Attempt, Member, Node
from service.db.records.attempts import AttemptRecord, ClaimedOn, MemberRecord
from service.db.records.jobs import JobRecord
from service.db.records.nodes import DeviceRecord, NodeRecord
from service.db.unit_of_work import unit_of
from service.lifecycle import carry, devices, restore
from service.lifecycle.exceptions import Conflict
from service.lifecycle.notes import Note
from service.lifecycle.rows import CLAIMED, lock_attempt, lock_job, member_on, spans_nodes
from service.lifecycle.transitions import change_attempt, change_job, move_attempt, move_job
from service.scheduler.model.nodes import Placement
from torchyard.ids import AttemptId, JobId, new_id
from torchyard.quantities import format_size
from torchyard.states import AttemptState, JobState
from torchyard.wire import Identity

_MEMBERS = cast("Table", Member.__table__)
_INSERT_ATTEMPT = insert(cast("Table", Attempt.__table__))
_INSERT_MEMBERS = insert(_MEMBERS)
_SET_MEMBER = update(_MEMBERS).where(_MEMBERS.c.attempt_id == bindparam("attempt"), _MEMBERS.c.node == bindparam("on"))
_NODE: Select[Any] = select(Node.__table__).where(Node.name == bindparam("name"))


def assign(
    tx: Connection, job_id: JobId, places: Sequence[Placement], now: int, looked_us: int | None = None
) -> AttemptId:
    """Give a queued job devices of each of its nodes; return the new attempt's id. `looked_us` is when the scheduling
    pass began.

    `Conflict` if the job no longer waits, a node drains or is silent, or a device is held, gone or unusable. A
    device can't be given twice: the database itself refuses the second live allocation. After a `Conflict` the
    transaction must be rolled back.
    """
    job = lock_job(tx, job_id)
    if job.state != JobState.QUEUED or job.held or job.blocked:
        why = "held" if job.held else "blocked" if job.blocked else job.state
        raise Conflict(f"job {job.number} is {why}: it does not wait for devices")
    given = devices.usable(tx, places)
    attempt_id, number = AttemptId(new_id("att")), job.attempt + 1
    checkpoint = restore.choose(tx, job, list(given))
    tx.execute(
        _INSERT_ATTEMPT,
        {
            "id": attempt_id,
            "job_id": job_id,
            "number": number,
            "state": AttemptState.ASSIGNED,
            "restore_checkpoint": checkpoint.id if checkpoint else None,
            "resumed_from_step": checkpoint.step if checkpoint else None,
            "carried_from": None if checkpoint else carry.choose(tx, job),
            "created_us": now,
            "nudged_us": now,
            "start": None if looked_us is None else {"looked_us": looked_us},
        },
    )
    ranked = [{"attempt_id": attempt_id, "node_rank": rank, "node": node} for rank, node in enumerate(given)]
    tx.execute(_INSERT_MEMBERS, ranked)
    share = job.spec.gpu_share
    devices.take(tx, attempt_id, given, share, now)
    for node in given:
        unit_of(tx).launch(node, attempt_id)
        unit_of(tx).tell_node(node)
    sized = "" if share is None else f"{format_size(share)} each of "
    note = Note(
        kind="assigned",
        message="assigned to " + " and ".join(f"{sized}{_named(rows)} of node {node}" for node, rows in given.items()),
        data={
            "node": ", ".join(given),
            "devices": [row.uuid for rows in given.values() for row in rows],
            "places": [_place(node, rows) for node, rows in given.items()],
            "share": sized.removesuffix(" each of "),
        },
    )
    move_job(
        tx,
        job,
        JobState.ASSIGNED,
        note,
        now,
        attempt=number,
        restore_checkpoint=checkpoint.id if checkpoint else job.restore_checkpoint,
    )
    return attempt_id


def claim(tx: Connection, attempt_id: AttemptId, node: str, nonce: str, now: int) -> None:
    """Give an assigned attempt to a node; the same nonce may do so again, since its answer may have been lost.

    `Conflict` if another nonce has it, or it is void or over. An attempt on several nodes stays ASSIGNED until all
    are prepared (`gang.prepared`).
    """
    job, attempt = lock_attempt(tx, attempt_id)
    member = member_on(tx, attempt_id, node)
    if member.nonce == nonce and attempt.state in CLAIMED:
        return
    if attempt.state != AttemptState.ASSIGNED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it cannot be claimed")
    note = Note(kind="claimed", message=f"node {node} prepares code and environment", data={"node": node})
    if spans_nodes(job):
        _claim_member(tx, job, attempt, member, note, now, nonce)
    else:
        _take(tx, job, attempt, node, note, now, nonce=nonce)


def _claim_member(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, member: MemberRecord, note: Note, now: int, nonce: str
) -> None:
    if member.nonce not in (None, nonce):
        raise Conflict(f"attempt {attempt.id} was claimed by another worker of node {member.node}")
    # Also when it comes again: the node may have been booted in between.
    _hand_over(tx, attempt, member.node, nonce=nonce)
    if member.nonce is None:
        change_job(tx, job.id, note, now)


def adopt(tx: Connection, attempt_id: AttemptId, node: str, now: int) -> JobId:
    """Take an assigned attempt for claimed that its node has begun: the claim is newer than this database, which was
    restored from a backup. Otherwise it would be voided, and its job run a second time. Returns the job's id.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state == AttemptState.ASSIGNED:
        message = f"node {node} had begun it already: the database was restored since"
        note = Note(kind="claimed", message=message, data={"node": node, "restored": True})
        _take(tx, job, attempt, node, note, now)
    elif attempt.state in CLAIMED and member_on(tx, attempt_id, node).claimed_on is None:
        _hand_over(tx, attempt, node)
    return job.id


def _take(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, node: str, note: Note, now: int, **claimed: Any
) -> None:
    _hand_over(tx, attempt, node, **claimed)
    move_attempt(tx, attempt, AttemptState.STARTING, claimed_us=now)
    move_job(tx, job, JobState.STARTING, note, now)


def _hand_over(tx: Connection, attempt: AttemptRecord, node: str, **claimed: Any) -> None:
    own = {"attempt": attempt.id, "on": node}
    tx.execute(_SET_MEMBER, {**own, "claimed_on": _claimed_on(tx, node).model_dump(), **claimed})


def mark_running(tx: Connection, attempt_id: AttemptId, started_us: int, now: int | None = None) -> None:
    """Record that the job's first instruction ran; told again or told late, it only fills in the time."""
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state not in CLAIMED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it cannot run")
    if attempt.started_us is not None:
        return
    if attempt.state != AttemptState.STARTING:
        change_attempt(tx, attempt, started_us=started_us)
        return
    move_attempt(tx, attempt, AttemptState.RUNNING, started_us=started_us)
    data = {"step": attempt.resumed_from_step, "carried": attempt.carried_from is not None}
    note = Note(kind="running", message=_resuming(attempt), data=data)
    move_job(tx, job, JobState.RUNNING, note, now or started_us, started_us=job.started_us or started_us)


def void(tx: Connection, attempt_id: AttemptId, why: str, now: int, data: dict[str, Any] | None = None) -> None:
    """Take an attempt back that nobody claimed; the job waits again and no retry is spent. `data` is what `why` is made
    of.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state != AttemptState.ASSIGNED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: only an assigned one can be voided")
    withdraw(tx, job, attempt, Note(kind="voided", message=why, data=data or {}), now)


def withdraw(tx: Connection, job: JobRecord, attempt: AttemptRecord, note: Note, now: int) -> None:
    """Put the job of an unclaimed attempt back into the queue."""
    move_attempt(tx, attempt, AttemptState.VOIDED, ended_us=now)
    devices.release(tx, attempt.id, now)
    move_job(tx, job, JobState.QUEUED, note, now, queued_us=now, stop=None, stop_actor=None)


def _claimed_on(tx: Connection, node: str) -> ClaimedOn:
    found = NodeRecord.one(tx.execute(_NODE, {"name": node}))
    identity = Identity(
        node_id=found.node_id, home_id=found.home_id, boot_id=found.boot_id, pid_namespace=found.pid_namespace
    )
    return ClaimedOn(identity=identity, beat=found.beat)


def _named(given: Sequence[DeviceRecord]) -> str:
    if not given:
        return "CPU cores"
    word = "GPU" if given[0].kind == "gpu" else "slot"
    return f"{word}{'s' if len(given) > 1 else ''} {', '.join(str(row.index) for row in given)}"


def _place(node: str, given: Sequence[DeviceRecord]) -> dict[str, str]:
    unit = given[0].kind if given else ""
    return {"node": node, "unit": unit, "indexes": ", ".join(str(row.index) for row in given)}


def _resuming(attempt: AttemptRecord) -> str:
    if attempt.carried_from is not None:
        return "the first instruction ran; it finds the files that the attempt before has left"
    if attempt.resumed_from_step is None:
        return "the first instruction ran"
    return f"the first instruction ran; resumes from step {attempt.resumed_from_step}"
