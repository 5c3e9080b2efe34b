"""Heartbeats of nodes: what they prove, and the orders that answer them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, select, update

from service import lifecycle
from service.artifacts import node_local
from service.db.models import Attempt, Member, Node
from service.db.records.attempts import ClaimedOn
from service.db.records.record import Record
from service.identity import unix_accounts
from service.lifecycle import proof
from service.nodes import node_devices, registration
from torchyard import wire
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState


@dataclass(frozen=True, kw_only=True)
class HeartbeatReply:
    """Reply to a heartbeat, and the jobs whose state it changed."""

    orders: wire.Orders
    changed: list[JobId]
    #: Devices came, went or were freed: the scheduler should look.
    wake: bool


@dataclass(frozen=True, slots=True)
class _ClaimedMember(Record):
    """A member that has not ended, by its attempt's id."""

    id: AttemptId
    claimed_on: ClaimedOn | None


_SET_NODE = update(cast("Table", Node.__table__)).where(Node.name == bindparam("node"))


def record(tx: Connection, node: str, heartbeat: wire.Heartbeat, now: int) -> HeartbeatReply:
    """Record a heartbeat: end what is proven dead, resume what is back, and return the node's orders.

    `lifecycle.Unknown` if the node has not registered.
    """
    row = registration.lock(tx, node)
    if row is None:
        raise lifecycle.Unknown(f"node {node} is not registered: register it first")
    devices = node_devices.kept_from_strangers(tx, heartbeat)
    changed = _adopt(tx, node, heartbeat.attempts, now)
    claimed, inventory = _claimed(tx, node), _inventory(heartbeat, row.beat)
    changed += lifecycle.set_elsewhere(tx, node, _out_of_sight(tx, claimed, inventory), now)
    dead = proof.dead(claimed, inventory)
    # All before the first ends: everybody locks jobs in this order, and accounts, which an end charges, after them.
    locked = {attempt_id: lifecycle.lock_attempt(tx, attempt_id) for attempt_id in dead}
    for attempt_id, why in dead.items():
        job, attempt = locked[attempt_id]
        if attempt.state in lifecycle.CLAIMED:  # its result may have come in meanwhile
            lifecycle.declare_dead(tx, attempt_id, why, now, node=node)
            changed.append(job.id)
    changed += lifecycle.set_reachable(tx, node, heartbeat.attempts, now)
    changed += _note_joining(tx, heartbeat.attempts, now)
    devices_changed = node_devices.store(tx, node, devices)  # after the jobs, as an end that blames a device does
    held_us = {each.attempt: each.held_us for each in heartbeat.attempts if each.held_us is not None}
    values = {
        **heartbeat.identity.model_dump(),
        "disk_free": heartbeat.disk_free,
        "disk_floor": heartbeat.disk_floor,
        "held_us": held_us or None,
        "offenders": heartbeat.offenders,
        "offender_findings": [each.model_dump(mode="json") for each in heartbeat.offender_findings] or None,
        "accounts": heartbeat.accounts,
        "last_seen_us": now,
        "unreachable": False,
        "beat": row.beat + 1,
    }
    tx.execute(_SET_NODE, {"node": node, **values})
    if row.unreachable:
        lifecycle.record_node_outages(tx, node)
    wake = bool(dead) or devices_changed or row.unreachable or row.last_seen_us is None
    wake = wake or row.accounts != heartbeat.accounts
    orders = lifecycle.orders_for(tx, node, heartbeat.attempts, heartbeat.retained)
    asked = {"accounts": unix_accounts.named(tx)}
    orders = orders.model_copy(update=node_local.orders(tx, node, heartbeat.kept) | asked)
    return HeartbeatReply(orders=orders, changed=changed, wake=wake)


def _note_joining(tx: Connection, reports: Sequence[wire.AttemptReport], now: int) -> list[JobId]:
    # Only of one that has begun, whose folder can be read, is it known that nothing is amiss.
    known = [each for each in reports if each.phase is wire.Phase.RUNNING and each.started_us is not None]
    unjoined = [each.attempt for each in reports if each.unjoined]
    return lifecycle.tell_joining(tx, unjoined, [each.attempt for each in known if not each.unjoined], now)


_TO_ADOPT: Select[Any] = (
    select(Attempt.id)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(
        Attempt.id.in_(bindparam("begun", expanding=True)),
        Member.node == bindparam("node"),
        # of one on several nodes, the first member that is reported has taken the attempt along
        (Attempt.state == AttemptState.ASSIGNED)
        | Attempt.state.in_(lifecycle.CLAIMED) & Member.claimed_on.is_(None) & Member.ended_us.is_(None),
    )
    .order_by(Attempt.job_id)
)
_REACHABLE: Select[Any] = (
    select(Attempt.id)
    .where(Attempt.id.in_(bindparam("attempts", expanding=True)), Attempt.state != AttemptState.UNREACHABLE)
    .order_by(Attempt.job_id)
)
_CLAIMED: Select[Any] = (
    select(Attempt.id, Member.claimed_on)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(Member.node == bindparam("node"), Member.ended_us.is_(None), Attempt.state.in_(lifecycle.CLAIMED))
    .order_by(Attempt.job_id)
)


def _adopt(tx: Connection, node: str, reports: Sequence[wire.AttemptReport], now: int) -> list[JobId]:
    """Take over what the node has begun and this database believes to be waiting; return the jobs' ids."""
    begun = [report.attempt for report in reports if report.phase is not wire.Phase.PREPARING]
    waiting = tx.scalars(_TO_ADOPT, {"begun": begun, "node": node}).all() if begun else ()
    return [lifecycle.adopt(tx, attempt, node, now) for attempt in waiting]


def _out_of_sight(tx: Connection, claimed: list[proof.Claimed], inventory: proof.Inventory) -> list[AttemptId]:
    """Return the attempts of `proof.out_of_sight` that still count as reachable."""
    unseen = proof.out_of_sight(claimed, inventory)
    return list(tx.scalars(_REACHABLE, {"attempts": unseen})) if unseen else []


def _claimed(tx: Connection, node: str) -> list[proof.Claimed]:
    return [
        proof.Claimed(attempt=each.id, identity=each.claimed_on.identity, beat=each.claimed_on.beat)
        for each in _ClaimedMember.each(tx.execute(_CLAIMED, {"node": node}))
        if each.claimed_on
    ]


def _inventory(heartbeat: wire.Heartbeat, given: int) -> proof.Inventory:
    return proof.Inventory(
        identity=heartbeat.identity,
        attempts=frozenset(report.attempt for report in heartbeat.attempts),
        beat=heartbeat.beat,
        given=given,
    )
