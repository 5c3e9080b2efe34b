"""Allocations: giving devices to an attempt, and taking them back.

`usable` reads the devices of a decision, `take` gives them to an attempt, `release` frees them; the caller owns the
transaction and rolls it back after a `Conflict`. An attempt has a device alone or shares it by memory, and the database
holds both: of a device that one attempt has alone no second allocation can be live (a partial unique index), and
`DeviceUse.used`, the memory that is given out, is never more than `DeviceUse.capacity` (a check). Who has a device
alone has all of its memory, so the two kinds exclude each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.db import upsert
from service.db.models import Allocation, Device, DeviceUse, Node
from service.db.records.nodes import DeviceRecord
from service.db.unit_of_work import unit_of
from service.lifecycle.exceptions import Conflict
from service.scheduler.model.nodes import Placement
from torchyard.ids import AttemptId

#: Devices by node.
Given = Mapping[str, Sequence[DeviceRecord]]

# Built once, over the tables: to build a statement over a mapped class costs more than to run it.
_USE, _ALLOCATIONS = cast("Table", DeviceUse.__table__), cast("Table", Allocation.__table__)
_NODE = select(Node.draining, Node.unreachable).where(Node.name == bindparam("node"))
_USABLE: Select[Any] = select(Device.__table__).where(
    Device.node == bindparam("node"),
    Device.uuid.in_(bindparam("uuids", expanding=True)),
    Device.present,
    Device.unusable.is_(None),
)
_SHARE = bindparam("share", type_=_USE.c.used.type)
_USE_OF_DEVICE = update(_USE).where(_USE.c.node == bindparam("of_node"), _USE.c.uuid == bindparam("of_uuid"))
#: Without a share all of the capacity: it fits only while nothing is used.
_WANTED = func.coalesce(_SHARE, _USE.c.capacity)
_ADD_USE = _USE_OF_DEVICE.where(_USE.c.used + _WANTED <= _USE.c.capacity).values(used=_USE.c.used + _WANTED)
_SUBTRACT_USE = _USE_OF_DEVICE.values(used=_USE.c.used - func.coalesce(_SHARE, _USE.c.used))
_ALLOCATE = insert(_ALLOCATIONS)
_RELEASE = (
    update(_ALLOCATIONS)
    .where(_ALLOCATIONS.c.attempt_id == bindparam("attempt"), _ALLOCATIONS.c.live)
    .values(live=False, released_us=bindparam("now"))
    .returning(_ALLOCATIONS.c.node, _ALLOCATIONS.c.uuid, _ALLOCATIONS.c.share)
)
_RELEASE_ON_NODE = _RELEASE.where(_ALLOCATIONS.c.node == bindparam("on"))


def usable(tx: Connection, places: Sequence[Placement]) -> dict[str, list[DeviceRecord]]:
    """Return the devices by node; `Conflict` if a node takes no jobs, or a device is gone or unusable."""
    return {place.node: _usable(tx, place) for place in places}


def _usable(tx: Connection, place: Placement) -> list[DeviceRecord]:
    row = tx.execute(_NODE, {"node": place.node}).one_or_none()
    if row is None or row.draining or row.unreachable:
        raise Conflict(f"node {place.node} takes no new jobs")
    rows = tx.execute(_USABLE, {"node": place.node, "uuids": place.uuids})
    found = {device.uuid: device for device in DeviceRecord.each(rows)}
    missing = [uuid for uuid in place.uuids if uuid not in found]
    if missing:
        raise Conflict(f"node {place.node} cannot give {', '.join(missing)}")
    return [found[uuid] for uuid in place.uuids]


def take(tx: Connection, attempt_id: AttemptId, given: Given, share: int | None, now: int) -> None:
    """Give devices to an attempt: `share` bytes of each, or all of each if that is None; `Conflict` if one is held."""
    # One order for all writers: no deadlock between their rows.
    rows = [row for node in sorted(given) for row in sorted(given[node], key=lambda row: row.uuid)]
    if not rows:
        return
    held = f"a device of node {', '.join(given)} is held by another attempt, or too little of it is left"
    uses = [{"node": row.node, "uuid": row.uuid, "capacity": row.memory, "used": 0} for row in rows]
    tx.execute(_store_capacities(tx), uses)
    try:
        for row in rows:
            # In the statement, not beforehand: of two writers that meet, the second sees what the first has taken.
            if not tx.execute(_ADD_USE, {"of_node": row.node, "of_uuid": row.uuid, "share": share}).rowcount:
                raise Conflict(held)
        tx.execute(_ALLOCATE, [_allocation(attempt_id, row, share, now) for row in rows])
    except IntegrityError as error:
        raise Conflict(held) from error


def release(tx: Connection, attempt_id: AttemptId, now: int, node: str | None = None) -> None:
    """Free the attempt's devices, on one node if that is named; only a result or a proof of death may lead here."""
    held = {"attempt": attempt_id, "now": now}
    freed = tx.execute(_RELEASE, held) if node is None else tx.execute(_RELEASE_ON_NODE, held | {"on": node})
    for row in sorted(freed, key=lambda row: (row.node, row.uuid)):
        tx.execute(_SUBTRACT_USE, {"of_node": row.node, "of_uuid": row.uuid, "share": row.share})
        unit_of(tx).tell_node(row.node)


@upsert.made_once
def _store_capacities(into: upsert.Into) -> upsert.Insert:
    """Return the statement that stores the capacities of devices, but of none that somebody holds."""
    row = into(DeviceUse)
    return row.on_conflict_do_update(
        index_elements=[DeviceUse.node, DeviceUse.uuid],
        set_={"capacity": row.excluded.capacity},
        where=DeviceUse.used == 0,
    )


def _allocation(attempt_id: AttemptId, row: DeviceRecord, share: int | None, now: int) -> dict[str, Any]:
    return {
        "attempt_id": attempt_id,
        "node": row.node,
        "uuid": row.uuid,
        "index": row.index,
        "created_us": now,
        "share": share,
    }
