"""Maintenance of nodes: they drain early enough for their jobs to save their work, and take jobs again afterwards.

A node begins to drain as long before its maintenance as a checkpoint may take (`Policy.checkpoint_timeout`). Jobs that
are still there then are asked to write a checkpoint, stop, and wait elsewhere, as with ``drain?stop_jobs=true``.
"""

from sqlalchemy import Connection, select, update

from service import lifecycle
from service.accounting.policy_settings import current_policy
from service.db.engine import Database
from service.db.models import Node
from service.db.unit_of_work import UnitOfWork
from service.errors import ProblemError
from service.infra import times
from service.infra.times import moment
from service.nodes import registration, reservations
from service.scheduler.policy.maintenance import drains
from service.scheduler_cache.reservations import to_come
from torchyard.translatable import TranslatableText

ACTOR = "maintenance"


def reconcile(db: Database, now: int) -> None:
    """Drain and resume nodes as the reservations say; called every second by the leader."""
    with db.read() as tx:
        if _due(tx, now) == _draining(tx):
            return
    with db.unit_of_work(now) as unit:
        _apply(unit)


def _apply(unit: UnitOfWork) -> None:
    """Drain nodes whose maintenance comes near, and resume those whose maintenance is over."""
    due, draining = _due(unit.tx, unit.now), _draining(unit.tx)
    for name in sorted(draining.keys() - due.keys()):
        registration.set_draining(unit.tx, name, False)
        _mark(unit.tx, name, None)
        unit.tell_node(name)
    for name in sorted(due):
        _mark(unit.tx, name, due[name])
        if name not in draining:
            _drain(unit, name)
    unit.wake_scheduler()


def _drain(unit: UnitOfWork, name: str) -> None:
    registration.set_draining(unit.tx, name, True)
    registration.stop_jobs(unit.tx, name, ACTOR, unit.now)
    unit.tell_node(name)
    unit.nudge(name)


def keep_drained(tx: Connection, node: str) -> None:
    """Keep the node drained when its maintenance ends: an administrator has drained it."""
    _mark(tx, node, None)


def refuse_resume(tx: Connection, node: str, now: int) -> None:
    """Raise ``conflict`` if the node is in maintenance: that must be cancelled first."""
    id_ = _wanted(tx, now).get(node)
    if id_ is None:
        return
    found = reservations.find(tx, id_)
    raise ProblemError(
        "conflict",
        TranslatableText(
            "node-in-maintenance",
            "Node {node} is in maintenance {name!r} until {end}: end that with `yard reservations --cancel {id}`.",
            node=node,
            name=found.name,
            end=times.words(moment(found.ends_us)),
            id=id_,
        ),
    )


def _mark(tx: Connection, node: str, maintenance: str | None) -> None:
    tx.execute(update(Node).where(Node.name == node).values(maintenance=maintenance))
    lifecycle.record_node_outages(tx, node)


def _draining(tx: Connection) -> dict[str, str]:
    """Return the nodes that drain for a maintenance, with its reservation's id."""
    rows = tx.execute(select(Node.name, Node.maintenance).where(Node.maintenance.is_not(None)))
    return {row.name: str(row.maintenance) for row in rows}


def _due(tx: Connection, now: int) -> dict[str, str]:
    """Return the nodes that should drain for a maintenance now; not those that an administrator drains anyway."""
    wanted = _wanted(tx, now)
    if not wanted:
        return {}
    by_hand = Node.draining & Node.maintenance.is_(None)
    known = tx.scalars(select(Node.name).where(Node.name.in_(wanted), ~by_hand))
    return {node: wanted[node] for node in known}


def _wanted(tx: Connection, now: int) -> dict[str, str]:
    """Return the nodes of maintenances that have begun, or are so near that jobs must save; of two, the earlier."""
    lead_us = current_policy(tx).checkpoint_timeout * 1_000_000
    return drains(to_come(tx, now), lead_us, now)
