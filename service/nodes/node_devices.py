"""Devices of nodes: brought up to date by what the nodes report."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from service import lifecycle
from service.db.models import Attempt, Device
from service.db.records.nodes import DeviceRecord
from torchyard import wire
from torchyard.states import AttemptState

_ALIVE = (wire.Phase.RUNNING, wire.Phase.STOPPING)
_STRANGER = "attempt {0}, which {1}, runs on it: wait for its end, or end it on the node"


def store(tx: Connection, node: str, devices: Sequence[wire.Device]) -> bool:
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


def unusable(tx: Connection, node: str) -> dict[str, str | None]:
    """Return why devices of the node must not be used, by UUID; None: they may."""
    query = select(Device.uuid, Device.unusable).where(Device.node == node)
    return {row.uuid: row.unusable for row in tx.execute(query)}


def kept_from_strangers(tx: Connection, heartbeat: wire.Heartbeat) -> list[wire.Device]:
    """Return the devices, unusable where an attempt runs that is unknown here or was declared dead."""
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
