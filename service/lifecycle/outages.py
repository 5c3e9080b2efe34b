"""Outages of devices and nodes: the spans of time in which they are given to no new job.

They are written where the state changes that keeps jobs away, in the same transaction and after the change. Whoever has
changed the row of a device or a node holds it until the commit, so of two writers the second sees what the first wrote.
"""

from sqlalchemy import Connection, delete, insert, select, update

from service.db.models import Node, Outage, Reservation
from service.db.unit_of_work import unit_of
from torchyard.api import OutageKind
from torchyard.wire import Finding

#: How the reason begins that stays with a device until an administrator resumes its node.
FAULTY = "failed under the last "
#: How it begins for what the driver has told.
QUARANTINED = "in quarantine: "


def out_of_use(unusable: str | None) -> bool:
    """Return true for a device that is out of use for a fault: that is an administrator's to take back."""
    return (unusable or "").startswith((FAULTY, QUARANTINED))


def record_device_outage(
    tx: Connection, node: str, uuid: str, unusable: str | None, finding: Finding | None = None
) -> None:
    """Begin or end a device's quarantine, as the reason says that its row has now, with what that is made of."""
    reason = (unusable or "").removeprefix(QUARANTINED)
    _record(tx, node, uuid, {(OutageKind.QUARANTINE, reason)} if out_of_use(unusable) else set(), finding)


def record_node_outages(tx: Connection, node: str) -> None:
    """Begin or end a node's drain, maintenance and silence, as its row says now."""
    query = (
        select(Node.draining, Node.drain_message, Node.maintenance, Node.unreachable, Reservation.name)
        .outerjoin(Reservation, Reservation.id == Node.maintenance)
        .where(Node.name == node)
    )
    row = tx.execute(query).one()
    holding: set[tuple[OutageKind, str]] = set()
    if row.draining and row.maintenance is not None:
        holding.add((OutageKind.MAINTENANCE, row.name or ""))
    elif row.draining:
        holding.add((OutageKind.DRAIN, row.drain_message or ""))
    if row.unreachable:
        holding.add((OutageKind.UNREACHABLE, ""))
    _record(tx, node, None, holding)


def _record(
    tx: Connection, node: str, uuid: str | None, holding: set[tuple[OutageKind, str]], finding: Finding | None = None
) -> None:
    """End what holds no longer, and begin what does from now on; another reason is another outage."""
    now = unit_of(tx).now
    query = select(Outage.id, Outage.kind, Outage.reason).where(
        Outage.ended_us.is_(None), Outage.node == node, Outage.uuid == uuid
    )
    known = {(OutageKind(row.kind), row.reason): row.id for row in tx.execute(query)}
    if over := [known[each] for each in known.keys() - holding]:
        # What began in this very transaction, or after it by a clock that was set back, has not held at all.
        tx.execute(delete(Outage).where(Outage.id.in_(over), Outage.started_us >= now))
        tx.execute(update(Outage).where(Outage.id.in_(over)).values(ended_us=now))
    for kind, reason in sorted(holding - known.keys()):
        made = {"kind": kind, "reason": reason, "finding": finding and finding.model_dump(mode="json")}
        tx.execute(insert(Outage).values(node=node, uuid=uuid, started_us=now, **made))
