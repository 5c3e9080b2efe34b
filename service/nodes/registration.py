"""Registration and heartbeats of nodes; drains and declared deaths by an administrator."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, exists, insert, or_, select, update
from sqlalchemy.orm import aliased

from service import lifecycle
from service.artifacts import node_local
from service.db.models import Attempt, Device, Job, Member, Node
from service.db.records.attempts import ClaimedOn
from service.db.records.nodes import DeviceRecord, NodeRecord
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.identity import unix_accounts
from service.lifecycle import proof
from torchyard import wire
from torchyard.states import AttemptState, StopReason

_ELSEWHERE = (
    "node {} is worked from another machine, home or container now; the job may still be running where it was started, "
    "so it is not started again until that one returns or an administrator declares it dead"
)
#: A name is another machine's while that one was heard within so many heartbeats.
TAKEN_BEATS = 3
_ALIVE = (wire.Phase.RUNNING, wire.Phase.STOPPING)
_STRANGER = "attempt {0}, which {1}, runs on it: wait for its end, or end it on the node"


@dataclass(frozen=True, kw_only=True)
class HeartbeatReply:
    """Reply to a heartbeat, and the jobs whose state it changed."""

    orders: wire.Orders
    changed: list[str]
    #: Devices came, went or were freed: the scheduler should look.
    wake: bool


@dataclass(frozen=True, slots=True)
class _AssignedAttempt(Record):
    """An attempt that has not begun, with its job's spec."""

    id: str
    job_id: str
    spec: StoredSpec


@dataclass(frozen=True, slots=True)
class _ClaimedMember(Record):
    """A member that has not ended, by its attempt's id."""

    id: str
    claimed_on: ClaimedOn | None


def register(tx: Connection, message: wire.Register, now: int, heartbeat_s: float) -> None:
    """Store a node's identity, resources and devices.

    `lifecycle.Conflict` if another machine that was heard just now has the name.
    """
    known = _lock(tx, message.node)
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
    }
    if known is None:
        tx.execute(insert(Node).values(name=message.node, last_seen_us=None, registered_us=now, **values))
    else:
        _refuse_second_machine(known, message.identity, now, heartbeat_s)
        tx.execute(update(Node).where(Node.name == message.node).values(**values))
        # What keeps a device from being used is for the next heartbeat to take back: it knows what runs there.
        known_bad = _unusable(tx, message.node)
        devices = [d if d.unusable else d.model_copy(update={"unusable": known_bad.get(d.uuid)}) for d in devices]
    _store_devices(tx, message.node, devices)


def record_heartbeat(tx: Connection, node: str, heartbeat: wire.Heartbeat, now: int) -> HeartbeatReply:
    """Record a heartbeat: end what is proven dead, resume what is back, and return the node's orders.

    `lifecycle.Unknown` if the node has not registered.
    """
    row = _lock(tx, node)
    if row is None:
        raise lifecycle.Unknown(f"node {node} is not registered: register it first")
    devices = _kept_from_strangers(tx, heartbeat)
    changed = _adopt(tx, node, heartbeat.attempts, now)
    claimed, inventory = _claimed(tx, node), _inventory(heartbeat, row.beat)
    changed += lifecycle.lose_sight(tx, node, _out_of_sight(tx, claimed, inventory), _ELSEWHERE.format(node), now)
    dead = proof.dead(claimed, inventory)
    # All before the first ends: everybody locks jobs in this order, and accounts, which an end charges, after them.
    locked = {attempt_id: lifecycle.lock_attempt(tx, attempt_id) for attempt_id in dead}
    for attempt_id, why in dead.items():
        job, attempt = locked[attempt_id]
        if attempt.state in lifecycle.CLAIMED:  # its result may have come in meanwhile
            lifecycle.declare_dead(tx, attempt_id, why, now, node=node)
            changed.append(str(job.id))
    changed += lifecycle.set_reachable(tx, node, heartbeat.attempts, now)
    changed += _note_joining(tx, heartbeat.attempts, now)
    devices_changed = _store_devices(tx, node, devices)  # after the jobs, as an end that blames a device does
    tx.execute(
        update(Node)
        .where(Node.name == node)
        .values(
            **heartbeat.identity.model_dump(),
            disk_free=heartbeat.disk_free,
            disk_floor=heartbeat.disk_floor,
            held_us={each.attempt: each.held_us for each in heartbeat.attempts if each.held_us is not None} or None,
            offenders=heartbeat.offenders,
            accounts=heartbeat.accounts,
            last_seen_us=now,
            unreachable=False,
            beat=row.beat + 1,
        )
    )
    wake = bool(dead) or devices_changed or row.unreachable or row.last_seen_us is None
    wake = wake or row.accounts != heartbeat.accounts
    orders = lifecycle.orders_for(tx, node, heartbeat.attempts, heartbeat.retained)
    asked = {"accounts": unix_accounts.named(tx)}
    orders = orders.model_copy(update=node_local.orders(tx, node, heartbeat.kept) | asked)
    return HeartbeatReply(orders=orders, changed=changed, wake=wake)


def _note_joining(tx: Connection, reports: Sequence[wire.AttemptReport], now: int) -> list[str]:
    # Only of one that has begun, whose folder can be read, is it known that nothing is amiss.
    known = [each for each in reports if each.phase is wire.Phase.RUNNING and each.started_us is not None]
    unjoined = [each.attempt for each in reports if each.unjoined]
    return lifecycle.tell_joining(tx, unjoined, [each.attempt for each in known if not each.unjoined], now)


def set_draining(tx: Connection, node: str, draining: bool) -> None:
    """Start or end a drain: a draining node gets no new jobs. Its end also gives devices another chance that jobs
    have failed under. `lifecycle.Unknown` for a strange name.
    """
    _known(tx, node)
    tx.execute(update(Node).where(Node.name == node).values(draining=draining))
    if not draining:
        faulty = Device.unusable.startswith(lifecycle.FAULTY, autoescape=True)
        tx.execute(update(Device).where(Device.node == node, faulty).values(unusable=None))


def stop_jobs(tx: Connection, node: str, actor: str | None, now: int) -> list[str]:
    """Ask every job of a draining node to save its work and wait elsewhere; return the jobs' ids."""
    jobs = _live_jobs(tx, node, lifecycle.LIVE)
    for job_id in jobs:
        lifecycle.request_stop(tx, job_id, StopReason.DRAIN, actor, now)
    return jobs


def declare_dead(tx: Connection, node: str, actor: str, now: int) -> list[str]:
    """Declare on an administrator's word that a silent node will not come back; return the ids of its jobs.

    On a node that is heard this ends only what its worker cannot see (`proof.out_of_sight`); `lifecycle.Conflict`
    if there is no such job.
    """
    row = _known(tx, node)
    unseen = _unseen(tx, node)
    if not row.unreachable and not unseen:
        raise lifecycle.Conflict(f"node {node} is heard: drain it, or cancel its jobs")
    why = f"{actor} says that node {node} is gone"
    for attempt_id in unseen:
        lifecycle.lock_attempt(tx, attempt_id)  # all before the first ends, as in `record_heartbeat`
    for attempt_id in unseen:
        lifecycle.declare_dead(tx, attempt_id, why, now, gone=not row.unreachable, node=node)
    return list(unseen.values())


def mark_unreachable(tx: Connection, node: str, last_seen_us: int | None, now: int) -> list[str]:
    """Take note that a node has been silent for too long, unless it was heard since `last_seen_us`; return the ids of
    the jobs that may still run there.
    """
    row = _lock(tx, node)
    if row is None or row.last_seen_us != last_seen_us or row.unreachable:
        return []
    tx.execute(update(Node).where(Node.name == node).values(unreachable=True))
    return lifecycle.set_unreachable(tx, node, now)


def waiting_for(tx: Connection, node: str) -> dict[str, str]:
    """Return attempts on several nodes that have not begun and need this one, with their jobs."""
    query = (
        select(Attempt.id, Attempt.job_id, Job.spec)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Member.node == node, Attempt.state == AttemptState.ASSIGNED)
    )
    return {each.id: each.job_id for each in _AssignedAttempt.each(tx.execute(query)) if each.spec.nodes > 1}


def _lock(tx: Connection, node: str) -> NodeRecord | None:
    # key_share: attempts that refer to the node can be inserted meanwhile
    query = select(Node.__table__).where(Node.name == node).with_for_update(key_share=True)
    return NodeRecord.first(tx.execute(query))


def _known(tx: Connection, node: str) -> NodeRecord:
    found = _lock(tx, node)
    if found is None:
        raise lifecycle.Unknown(f"there is no node {node}")
    return found


def _refuse_second_machine(known: NodeRecord, identity: wire.Identity, now: int, heartbeat_s: float) -> None:
    heard = known.last_seen_us is not None and now - known.last_seen_us < TAKEN_BEATS * heartbeat_s * 1e6
    if heard and known.node_id != identity.node_id:
        raise lifecycle.Conflict(
            f"node {known.name} is the machine {known.hostname}, heard just now: give this one another name"
        )


def _store_devices(tx: Connection, node: str, devices: Sequence[wire.Device]) -> bool:
    """Bring the node's devices up to date; return whether anything changed. Rows are never deleted."""
    records = DeviceRecord.each(tx.execute(select(Device.__table__).where(Device.node == node)))
    stored = {record.uuid: record for record in records}
    changed = False
    for reported in devices:
        old = stored.pop(reported.uuid, None)
        device = _still_faulty(reported, old)
        values = {**device.model_dump(mode="json", exclude={"uuid"}), "present": True}
        if old is None:
            tx.execute(insert(Device).values(node=node, uuid=device.uuid, **values))
        elif not old.present or old.device() != device:
            tx.execute(update(Device).where(Device.node == node, Device.uuid == device.uuid).values(**values))
        else:
            continue
        changed = True
    gone = [uuid for uuid, record in stored.items() if record.present]
    if gone:
        tx.execute(update(Device).where(Device.node == node, Device.uuid.in_(gone)).values(present=False))
    return changed or bool(gone)


def _still_faulty(reported: wire.Device, old: DeviceRecord | None) -> wire.Device:
    """Return the device, unusable if jobs have failed under it: that is an administrator's to take back."""
    faulty = old is not None and (old.unusable or "").startswith(lifecycle.FAULTY)
    if old is None or not faulty or reported.unusable is not None:
        return reported
    return reported.model_copy(update={"unusable": old.unusable})


def _unusable(tx: Connection, node: str) -> dict[str, str | None]:
    query = select(Device.uuid, Device.unusable).where(Device.node == node)
    return {row.uuid: row.unusable for row in tx.execute(query)}


def _kept_from_strangers(tx: Connection, heartbeat: wire.Heartbeat) -> list[wire.Device]:
    """The devices, those unusable on which an attempt runs that is unknown here or was declared dead."""
    alive = [each for each in heartbeat.attempts if each.phase in _ALIVE]
    query = select(Attempt.id, Attempt.state).where(Attempt.id.in_([each.attempt for each in alive]))
    states = {row.id: row.state for row in tx.execute(query)} if alive else {}
    strangers = {
        uuid: _STRANGER.format(each.attempt, "is unknown here" if each.attempt not in states else "was declared dead")
        for each in alive
        if states.get(each.attempt, AttemptState.LOST) == AttemptState.LOST
        for uuid in each.devices
    }
    return [
        device.model_copy(update={"unusable": strangers[device.uuid]}) if device.uuid in strangers else device
        for device in heartbeat.devices
    ]


def _adopt(tx: Connection, node: str, reports: Sequence[wire.AttemptReport], now: int) -> list[str]:
    """Take over what the node has begun and this database believes to be waiting; return the jobs' ids."""
    begun = [report.attempt for report in reports if report.phase is not wire.Phase.PREPARING]
    # of one on several nodes, the first member that is reported has taken the attempt along
    unclaimed = Attempt.state.in_(lifecycle.CLAIMED) & Member.claimed_on.is_(None) & Member.ended_us.is_(None)
    waiting = (Attempt.id.in_(begun), (Attempt.state == AttemptState.ASSIGNED) | unclaimed, Member.node == node)
    query = select(Attempt.id).join(Member, Member.attempt_id == Attempt.id).where(*waiting).order_by(Attempt.job_id)
    return [lifecycle.adopt(tx, attempt, node, now) for attempt in tx.scalars(query).all()] if begun else []


def _out_of_sight(tx: Connection, claimed: list[proof.Claimed], inventory: proof.Inventory) -> list[str]:
    """Return the attempts of `proof.out_of_sight` that still count as reachable."""
    unseen = proof.out_of_sight(claimed, inventory)
    query = select(Attempt.id).where(Attempt.id.in_(unseen), Attempt.state != AttemptState.UNREACHABLE)
    return list(tx.scalars(query.order_by(Attempt.job_id))) if unseen else []


def _claimed(tx: Connection, node: str) -> list[proof.Claimed]:
    query = (
        select(Attempt.id, Member.claimed_on)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Member.node == node, Member.ended_us.is_(None), Attempt.state.in_(lifecycle.CLAIMED))
        .order_by(Attempt.job_id)
    )
    return [
        proof.Claimed(attempt=each.id, identity=each.claimed_on.identity, beat=each.claimed_on.beat)
        for each in _ClaimedMember.each(tx.execute(query))
        if each.claimed_on
    ]


def _inventory(heartbeat: wire.Heartbeat, given: int) -> proof.Inventory:
    return proof.Inventory(
        identity=heartbeat.identity,
        attempts=frozenset(report.attempt for report in heartbeat.attempts),
        beat=heartbeat.beat,
        given=given,
    )


def _unseen(tx: Connection, node: str) -> dict[str, str]:
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


def _live_jobs(tx: Connection, node: str, states: tuple[AttemptState, ...]) -> list[str]:
    query = (
        select(Job.id)
        .join(Attempt, Attempt.job_id == Job.id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Member.node == node, Attempt.state.in_(states))
        .order_by(Job.id)
    )
    return list(tx.scalars(query))
