"""Devices of nodes: brought up to date by what the nodes report."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from service import lifecycle
from service.db.models import Attempt, Device
from service.db.records.nodes import DeviceRecord
from torchyard import wire
from torchyard.states import AttemptState

_ALIVE = (wire.Phase.RUNNING, wire.Phase.STOPPING)
_STRANGER = "attempt {0}, which {1}, runs on it: wait for its end, or end it on the node"
_OF_NODE = select(Device.__table__).where(Device.node == bindparam("node"))
_STATES = select(Attempt.id, Attempt.state).where(Attempt.id.in_(bindparam("attempts", expanding=True)))


def store(tx: Connection, node: str, devices: Sequence[wire.Device]) -> bool:
    """Bring the node's devices up to date; return whether anything changed. Rows are never deleted."""
    records = DeviceRecord.each(tx.execute(_OF_NODE, {"node": node}))
    stored = {record.uuid: record for record in records}
    changed = False
    for reported in devices:
        old = stored.pop(reported.uuid, None)
        device = _quarantined(_still_faulty(reported, old), node, old)
        # A fault that is over, and comes again, is another one.
        known = old.acknowledged if old is not None and old.acknowledged == device.fault else None
        own = {"present": True, "acknowledged": known, "reported_unusable": reported.unusable}
        values = device.model_dump(mode="json", exclude={"uuid"}) | own
        if old is None:
            tx.execute(insert(Device).values(node=node, uuid=device.uuid, **values))
        elif not old.present or old.device() != device or old.reported_unusable != reported.unusable:
            tx.execute(update(Device).where(Device.node == node, Device.uuid == device.uuid).values(**values))
        else:
            continue
        changed = True
        if device.unusable != (None if old is None else old.unusable):
            lifecycle.record_device_outage(tx, node, device.uuid, device.unusable)
    gone = [uuid for uuid, record in stored.items() if record.present]
    if gone:
        tx.execute(update(Device).where(Device.node == node, Device.uuid.in_(gone)).values(present=False))
    return changed or bool(gone)


def _still_faulty(reported: wire.Device, old: DeviceRecord | None) -> wire.Device:
    """Return the device, unusable if it is out of use for a fault: that is an administrator's to take back, whatever
    else its node tells of it meanwhile.
    """
    if old is None or not lifecycle.out_of_use(old.unusable):
        return reported
    return reported.model_copy(update={"unusable": old.unusable})


def _quarantined(device: wire.Device, node: str, old: DeviceRecord | None) -> wire.Device:
    """Return the device, in quarantine if its driver tells of a fault with which nobody has returned it to use."""
    if device.fault is None or (old is not None and old.acknowledged == device.fault):
        return device
    why = f"{lifecycle.QUARANTINED}{device.fault}, then `yard nodes --return {node}:{device.index}`"
    return device.model_copy(update={"unusable": why})


def return_to_use(tx: Connection, node: str, which: str | None = None) -> list[int]:
    """Give devices that are out of use for a fault another chance; return their indexes.

    `which` is one's index or UUID; None: all of the node. What is broken about them now no longer counts; what their
    node itself keeps jobs from them for does.
    """
    query = select(Device.__table__).where(Device.node == node, Device.present).order_by(Device.index)
    returned = [
        device
        for device in DeviceRecord.all(tx.execute(query))
        if lifecycle.out_of_use(device.unusable) and which in {None, str(device.index), device.uuid}
    ]
    for device in returned:
        values = {"unusable": device.reported_unusable, "acknowledged": device.fault}
        tx.execute(update(Device).where(Device.node == node, Device.uuid == device.uuid).values(**values))
        lifecycle.record_device_outage(tx, node, device.uuid, device.reported_unusable)
    return [device.index for device in returned]


def reported_unusable(tx: Connection, node: str) -> dict[str, str | None]:
    """Return why the node itself keeps jobs from devices, by UUID; None: it does not."""
    query = select(Device.uuid, Device.reported_unusable).where(Device.node == node)
    return {row.uuid: row.reported_unusable for row in tx.execute(query)}


def kept_from_strangers(tx: Connection, heartbeat: wire.Heartbeat) -> list[wire.Device]:
    """Return the devices, unusable where an attempt runs that is unknown here or was declared dead."""
    alive = [each for each in heartbeat.attempts if each.phase in _ALIVE]
    rows = tx.execute(_STATES, {"attempts": [each.attempt for each in alive]}) if alive else ()
    states = {row.id: row.state for row in rows}
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
