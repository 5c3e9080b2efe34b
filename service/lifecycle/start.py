"""From the queue to the first instruction: assign, claim, running; and void when nobody claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.db.models import Allocation, Attempt, Device, Member, Node
from service.lifecycle import restore
from service.lifecycle.exceptions import Conflict
from service.lifecycle.release import release
from service.lifecycle.rows import CLAIMED, AttemptRow, JobRow, lock_attempt, lock_job, member, spans_nodes
from service.lifecycle.transitions import Note, change_attempt, change_job, move_attempt, move_job
from service.scheduler.boxes import Place
from torchyard.ids import new_id
from torchyard.states import AttemptState, JobState


def assign(tx: Connection, job_id: str, places: Sequence[Place], now: int) -> str:
    """Gives a queued job devices of each of its nodes; returns the new attempt's id.

    `Conflict` if the job no longer waits, a node drains or is silent, or a device is held, gone or unusable. A
    device can't be given twice: the database itself refuses the second live allocation. After a `Conflict` the
    transaction must be rolled back.
    """
    job = lock_job(tx, job_id)
    if job.state != JobState.QUEUED or job.held:
        raise Conflict(f"job {job.number} is {'held' if job.held else job.state}: it does not wait for devices")
    devices = {place.node: _usable(tx, place) for place in places}
    attempt_id, number = new_id("att"), job.attempt + 1
    checkpoint = restore.choose(tx, job, list(devices))
    tx.execute(
        insert(Attempt).values(
            id=attempt_id,
            job_id=job_id,
            number=number,
            state=AttemptState.ASSIGNED,
            restore_checkpoint=checkpoint.id if checkpoint else None,
            resumed_from_step=checkpoint.step if checkpoint else None,
            created_us=now,
            nudged_us=now,
        )
    )
    ranked = [{"attempt_id": attempt_id, "node_rank": rank, "node": node} for rank, node in enumerate(devices)]
    tx.execute(insert(Member), ranked)
    _allocate(tx, attempt_id, devices, now)
    note = Note(
        kind="assigned",
        message="assigned to " + " and ".join(f"{_named(given)} of node {node}" for node, given in devices.items()),
        data={
            "node": ", ".join(devices),
            "devices": [device.uuid for given in devices.values() for device in given],
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


def claim(tx: Connection, attempt_id: str, node: str, nonce: str, now: int) -> None:
    """A node takes an assigned attempt; the same nonce may do so again, since its answer may have been lost.

    `Conflict` if another nonce has it, or it is void or over. An attempt on several nodes stays ASSIGNED until all
    are prepared (`parts.prepared`).
    """
    job, attempt = lock_attempt(tx, attempt_id)
    part = member(tx, attempt_id, node)
    if part.nonce == nonce and attempt.state in CLAIMED:
        return
    if attempt.state != AttemptState.ASSIGNED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it cannot be claimed")
    note = Note(kind="claimed", message=f"node {node} prepares code and environment")
    if spans_nodes(job):
        _take_part(tx, job, attempt, part, note, now, nonce)
    else:
        _take(tx, job, attempt, node, note, now, nonce=nonce)


def _take_part(
    tx: Connection, job: JobRow, attempt: AttemptRow, part: Row[Any], note: Note, now: int, nonce: str
) -> None:
    if part.nonce not in (None, nonce):
        raise Conflict(f"attempt {attempt.id} was claimed by another worker of node {part.node}")
    # Also when it comes again: the node may have been booted in between.
    _hand_over(tx, attempt, part.node, nonce=nonce)
    if part.nonce is None:
        change_job(tx, str(job.id), note, now)


def adopt(tx: Connection, attempt_id: str, node: str, now: int) -> str:
    """Takes an assigned attempt for claimed that its node has begun: the claim is newer than this database, which was
    restored from a backup. Otherwise it would be voided, and its job run a second time. Returns the job's id.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state == AttemptState.ASSIGNED:
        note = Note(kind="claimed", message=f"node {node} had begun it already: the database was restored since")
        _take(tx, job, attempt, node, note, now)
    elif attempt.state in CLAIMED and member(tx, attempt_id, node).claimed_on is None:
        _hand_over(tx, attempt, node)
    return str(job.id)


def _take(tx: Connection, job: JobRow, attempt: AttemptRow, node: str, note: Note, now: int, **claimed: Any) -> None:
    _hand_over(tx, attempt, node, **claimed)
    move_attempt(tx, attempt, AttemptState.STARTING, claimed_us=now)
    move_job(tx, job, JobState.STARTING, note, now)


def _hand_over(tx: Connection, attempt: AttemptRow, node: str, **claimed: Any) -> None:
    part = (Member.attempt_id == attempt.id, Member.node == node)
    tx.execute(update(Member).where(*part).values(claimed_on=_identity(tx, node), **claimed))


def mark_running(tx: Connection, attempt_id: str, started_us: int, now: int | None = None) -> None:
    """The job's first instruction ran; told again or told late, it only fills in the time."""
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state not in CLAIMED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it cannot run")
    if attempt.started_us is not None:
        return
    if attempt.state != AttemptState.STARTING:
        change_attempt(tx, attempt, started_us=started_us)
        return
    move_attempt(tx, attempt, AttemptState.RUNNING, started_us=started_us)
    note = Note(kind="running", message=_resuming(attempt))
    move_job(tx, job, JobState.RUNNING, note, now or started_us, started_us=job.started_us or started_us)


def void(tx: Connection, attempt_id: str, why: str, now: int) -> None:
    """Takes an attempt back that nobody claimed; the job waits again and no retry is spent."""
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state != AttemptState.ASSIGNED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: only an assigned one can be voided")
    withdraw(tx, job, attempt, Note(kind="voided", message=why), now)


def withdraw(tx: Connection, job: JobRow, attempt: AttemptRow, note: Note, now: int) -> None:
    """Puts the job of an unclaimed attempt back into the queue."""
    move_attempt(tx, attempt, AttemptState.VOIDED, ended_us=now)
    release(tx, attempt.id, now)
    move_job(tx, job, JobState.QUEUED, note, now, queued_us=now, stop=None, stop_actor=None)


def _require_open(tx: Connection, node: str) -> None:
    row = tx.execute(select(Node.draining, Node.unreachable).where(Node.name == node)).one_or_none()
    if row is None or row.draining or row.unreachable:
        raise Conflict(f"node {node} takes no new jobs")


def _usable(tx: Connection, place: Place) -> list[Row[Any]]:
    _require_open(tx, place.node)
    query = select(Device.__table__).where(
        Device.node == place.node, Device.uuid.in_(place.uuids), Device.present, Device.unusable.is_(None)
    )
    found = {row.uuid: row for row in tx.execute(query)}
    missing = [uuid for uuid in place.uuids if uuid not in found]
    if missing:
        raise Conflict(f"node {place.node} cannot give {', '.join(missing)}")
    return [found[uuid] for uuid in place.uuids]


def _allocate(tx: Connection, attempt_id: str, devices: Mapping[str, Sequence[Row[Any]]], now: int) -> None:
    values = [
        {"attempt_id": attempt_id, "node": node, "uuid": d.uuid, "index": d.index, "created_us": now}
        for node in sorted(devices)  # one order for all writers: no deadlock in the index
        for d in sorted(devices[node], key=lambda d: str(d.uuid))
    ]
    if not values:
        return
    try:
        tx.execute(insert(Allocation), values)
    except IntegrityError as error:
        raise Conflict(f"a device of node {', '.join(devices)} is held by another attempt") from error


def _identity(tx: Connection, node: str) -> dict[str, Any]:
    row = tx.execute(select(Node.__table__).where(Node.name == node)).one()
    return {
        "identity": {
            "node_id": row.node_id,
            "home_id": row.home_id,
            "boot_id": row.boot_id,
            "pid_namespace": row.pid_namespace,
        },
        "beat": row.beat,
    }


def _named(devices: Sequence[Row[Any]]) -> str:
    if not devices:
        return "CPU cores"
    word = "GPU" if devices[0].kind == "gpu" else "slot"
    return f"{word}{'s' if len(devices) > 1 else ''} {', '.join(str(d.index) for d in devices)}"


def _resuming(attempt: AttemptRow) -> str:
    if attempt.resumed_from_step is None:
        return "the first instruction ran"
    return f"the first instruction ran; resumes from step {attempt.resumed_from_step}"
