"""Orders to a node for its attempts: the answer to its heartbeat."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, exists, select
from sqlalchemy.orm import aliased

from service.db.models import Attempt, Job, Member, Node, Stacks
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.lifecycle import carry
from service.lifecycle.rows import CLAIMED, LIVE
from torchyard.ids import AttemptId
from torchyard.states import STOP_PRECEDENCE, AttemptState, StopReason
from torchyard.wire import Action, AttemptOrder, AttemptReport, DumpOrder, Orders, Phase


@dataclass(frozen=True, slots=True)
class _OrderedMember(Record):
    """A member on the node, with what its orders depend on; `id` and `state` are its attempt's."""

    id: AttemptId
    state: AttemptState
    checkpoint_serial: int
    dump_serial: int
    stop: StopReason | None
    spec: StoredSpec
    node_rank: int
    settled: bool
    ended_us: int | None
    failed: bool
    """A member of the attempt, on any node, has failed."""


def orders_for(
    tx: Connection, node: str, reported: Sequence[AttemptReport] = (), retained: Sequence[AttemptId] = ()
) -> Orders:
    """Return the desired state of every live attempt of the node, and what it may forget of what it reported.

    An attempt that was proven dead and is alive after all is killed: its job may run elsewhere. One that is unknown
    here (the database was restored from a backup) gets no order.
    """
    rows = _rows(tx, node, [report.attempt for report in reported])
    lost = {row.id for row in rows if row.state == AttemptState.LOST or row.ended_us is not None}
    alive = {report.attempt for report in reported if report.phase is not Phase.ENDED}
    kill = [AttemptOrder(attempt=attempt, action=Action.KILL) for attempt in sorted(lost & alive)]
    return Orders(
        assigned=[row.id for row in rows if row.state == AttemptState.ASSIGNED],
        orders=[_order(row) for row in rows if row.state in CLAIMED and row.ended_us is None] + kill,
        dumps=_dumps(tx, rows),
        forget=[row.id for row in rows if row.settled and row.id not in alive] + _unwanted(tx, retained),
        beat=tx.scalar(select(Node.beat).where(Node.name == node)) or 0,
    )


def _unwanted(tx: Connection, retained: Sequence[AttemptId]) -> list[AttemptId]:
    """Return attempts of which nobody awaits the files; of one that is unknown here nothing is known."""
    if not retained:
        return []
    known = tx.scalars(select(Attempt.id).where(Attempt.id.in_(retained)))
    return sorted(set(known) - carry.awaited(tx, retained))


def _rows(tx: Connection, node: str, reported: list[AttemptId]) -> Sequence[_OrderedMember]:
    other = aliased(Member)
    failed = exists().where(other.attempt_id == Attempt.id, other.failed_us.is_not(None))
    of_part = (Member.node_rank, Member.settled, Member.ended_us, failed.label("failed"))
    serials = (Attempt.checkpoint_serial, Attempt.dump_serial)
    query = (
        select(Attempt.id, Attempt.state, *serials, Job.stop, Job.spec, *of_part)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Member.node == node, Attempt.state.in_(LIVE) | Attempt.id.in_(reported))
        .order_by(Attempt.id)
    )
    return _OrderedMember.all(tx.execute(query))


def _dumps(tx: Connection, rows: Sequence[_OrderedMember]) -> list[DumpOrder]:
    """Return orders for stacks that were asked for and have not come."""
    asked = [row for row in rows if row.dump_serial and row.state in CLAIMED and row.ended_us is None]
    query = select(Stacks.attempt_id, Stacks.node_rank, Stacks.serial).where(
        Stacks.attempt_id.in_([row.id for row in asked])
    )
    come = {tuple(row) for row in tx.execute(query)} if asked else set()
    return [
        DumpOrder(attempt=row.id, serial=row.dump_serial)
        for row in asked
        if (row.id, row.node_rank, row.dump_serial) not in come
    ]


def _order(row: _OrderedMember) -> AttemptOrder:
    if row.failed:
        return AttemptOrder(attempt=row.id, action=Action.KILL)
    if row.stop:
        # grows with every checkpoint asked for and with every stronger reason, so each order is new to the node
        serial = row.checkpoint_serial + 1 + STOP_PRECEDENCE[row.stop]
        return AttemptOrder(
            attempt=row.id,
            action=Action.STOP,
            serial=serial,
            reason=row.stop,
            grace_s=row.spec.grace_s,
        )
    if row.checkpoint_serial:
        return AttemptOrder(attempt=row.id, action=Action.CHECKPOINT, serial=row.checkpoint_serial)
    return AttemptOrder(attempt=row.id, action=Action.RUN)
