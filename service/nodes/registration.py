"""Registration of nodes; nodes that fall silent; drains and declared deaths by an administrator."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, exists, insert, or_, select, update
from sqlalchemy.orm import aliased

from service import lifecycle
from service.db.models import Attempt, Job, Member, Node
from service.db.records.nodes import NodeRecord
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.nodes import node_devices
from torchyard import wire
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState, StopReason
from torchyard.translatable import TranslatableText

#: A name is another machine's while that one was heard within so many heartbeats.
TAKEN_BEATS = 3


@dataclass(frozen=True, slots=True)
class _AssignedAttempt(Record):
    """An attempt that has not begun, with its job's spec."""

    id: AttemptId
    job_id: JobId
    spec: StoredSpec


def register(tx: Connection, message: wire.Register, now: int, heartbeat_s: float) -> None:
    """Store a node's identity, resources and devices.

    `lifecycle.Conflict` if another machine that was heard just now has the name.
    """
    known = lock(tx, message.node)
    devices = message.devices
    values = {
        **message.identity.model_dump(),
        "hostname": message.hostname,
        "version": message.version,
        "runs_as_root": message.runs_as_root,
        "cpus": message.cpus,
        "memory": message.memory,
        "labels": message.labels or None,
        "capabilities": message.capabilities or None,
        "unenforced": message.unenforced,
        "unenforced_finding": message.unenforced_finding and message.unenforced_finding.model_dump(mode="json"),
    }
    if known is None:
        tx.execute(insert(Node).values(name=message.node, last_seen_us=None, registered_us=now, **values))
    else:
        _refuse_second_machine(known, message.identity, now, heartbeat_s)
        tx.execute(update(Node).where(Node.name == message.node).values(**values))
        # What keeps a device from being used is for the next heartbeat to take back: it knows what runs there.
        devices = node_devices.still_unusable(tx, message.node, devices)
    node_devices.store(tx, message.node, devices)


def set_draining(tx: Connection, node: str, draining: bool, message: str = "") -> None:
    """Start or end a drain: a draining node gets no new jobs. Its end also gives devices another chance that are out
    of use for a fault. `lifecycle.Unknown` for a strange name.
    """
    _known(tx, node)
    tx.execute(update(Node).where(Node.name == node).values(draining=draining, drain_message=message or None))
    lifecycle.record_node_outages(tx, node)
    if not draining:
        node_devices.return_to_use(tx, node)


def return_device(tx: Connection, node: str, device: str) -> int:
    """Return a device to use that is out of use for a fault, by index or UUID; return its index.

    `lifecycle.Unknown` for a strange node, `lifecycle.Conflict` if no such device is out of use for a fault.
    """
    _known(tx, node)
    for index in node_devices.return_to_use(tx, node, device):
        return index
    raise lifecycle.Conflict(
        TranslatableText(
            "device-in-use",
            "device {device} of node {node} is not out of use for a fault: see `yard nodes`",
            device=device[:80],
            node=node,
        )
    )


def stop_jobs(tx: Connection, node: str, actor: str | None, now: int) -> list[JobId]:
    """Ask every job of a draining node to save its work and wait elsewhere; return the jobs' ids."""
    jobs = _live_jobs(tx, node, lifecycle.LIVE)
    for job_id in jobs:
        lifecycle.request_stop(tx, job_id, StopReason.DRAIN, actor, now)
    return jobs


def declare_dead(tx: Connection, node: str, actor: str, now: int) -> list[JobId]:
    """Declare on an administrator's word that a silent node will not come back; return the ids of its jobs.

    On a node that is heard this ends only what its worker cannot see (`proof.out_of_sight`); `lifecycle.Conflict`
    if there is no such job.
    """
    row = _known(tx, node)
    unseen = _unseen(tx, node)
    if not row.unreachable and not unseen:
        raise lifecycle.Conflict(
            TranslatableText("node-heard", "node {node} is heard: drain it, or cancel its jobs", node=node)
        )
    why = f"{actor} says that node {node} is gone"
    for attempt_id in unseen:
        lifecycle.lock_attempt(tx, attempt_id)  # all before the first ends, as in `heartbeats.record`
    for attempt_id in unseen:
        lifecycle.declare_dead(tx, attempt_id, why, now, gone=not row.unreachable, node=node)
    return list(unseen.values())


def mark_unreachable(tx: Connection, node: str, last_seen_us: int | None, now: int) -> list[JobId]:
    """Take note that a node has been silent for too long, unless it was heard since `last_seen_us`; return the ids of
    the jobs that may still run there.
    """
    row = lock(tx, node)
    if row is None or row.last_seen_us != last_seen_us or row.unreachable:
        return []
    tx.execute(update(Node).where(Node.name == node).values(unreachable=True))
    lifecycle.record_node_outages(tx, node)
    return lifecycle.set_unreachable(tx, node, now)


def waiting_for(tx: Connection, node: str) -> dict[AttemptId, JobId]:
    """Return attempts on several nodes that have not begun and need this one, with their jobs."""
    query = (
        select(Attempt.id, Attempt.job_id, Job.spec)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Member.node == node, Attempt.state == AttemptState.ASSIGNED)
    )
    return {each.id: each.job_id for each in _AssignedAttempt.each(tx.execute(query)) if each.spec.nodes > 1}


# key_share: attempts that refer to the node can be inserted meanwhile
_LOCK = select(Node.__table__).where(Node.name == bindparam("node")).with_for_update(key_share=True)


def lock(tx: Connection, node: str) -> NodeRecord | None:
    """Return the node, locked until the transaction ends; None if there is none."""
    return NodeRecord.first(tx.execute(_LOCK, {"node": node}))


def _known(tx: Connection, node: str) -> NodeRecord:
    found = lock(tx, node)
    if found is None:
        raise lifecycle.Unknown(f"there is no node {node}")
    return found


def _refuse_second_machine(known: NodeRecord, identity: wire.Identity, now: int, heartbeat_s: float) -> None:
    heard = known.last_seen_us is not None and now - known.last_seen_us < TAKEN_BEATS * heartbeat_s * 1e6
    if heard and known.node_id != identity.node_id:
        raise lifecycle.Conflict(
            f"node {known.name} is the machine {known.hostname}, heard just now: give this one another name"
        )


def _unseen(tx: Connection, node: str) -> dict[AttemptId, JobId]:
    """Return attempts whose member on the node is unreachable, with their jobs."""
    other = aliased(Member)
    alone = ~exists().where(other.attempt_id == Attempt.id, other.node_rank > 0)
    query = (
        select(Attempt.id, Attempt.job_id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(
            Attempt.state == AttemptState.UNREACHABLE,
            Member.node == node,
            Member.ended_us.is_(None),
            or_(alone, Member.unseen_us.is_not(None)),
        )
        .order_by(Attempt.job_id)
    )
    return {row.id: row.job_id for row in tx.execute(query)}


def _live_jobs(tx: Connection, node: str, states: tuple[AttemptState, ...]) -> list[JobId]:
    query = (
        select(Job.id)
        .join(Attempt, Attempt.job_id == Job.id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Member.node == node, Attempt.state.in_(states))
        .order_by(Job.id)
    )
    return list(tx.scalars(query))
