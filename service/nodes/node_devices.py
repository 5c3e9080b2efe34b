"""Devices of nodes: brought up to date by what the nodes report."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from service import lifecycle
from service.db.models import Attempt, Device
from service.db.records.nodes import DeviceRecord
from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.states import AttemptState

_ALIVE = (wire.Phase.RUNNING, wire.Phase.STOPPING)
_OF_NODE = select(Device.__table__).where(Device.node == bindparam("node"))
_STATES = select(Attempt.id, Attempt.state).where(Attempt.id.in_(bindparam("attempts", expanding=True)))


def store(tx: Connection, node: str, devices: Sequence[wire.Device]) -> bool:
    """Bring the node's devices up to date; return whether anything changed. Rows are never deleted."""
    records = DeviceRecord.each(tx.execute(_OF_NODE, {"node": node}))
    stored = {record.uuid: record for record in records}
    changed = False
    for reported in devices:
        old = stored.pop(reported.uuid, None)
        device = _of_findings(_quarantined(_still_faulty(reported, old), node, old), reported)
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
            finding = wire.Finding.with_message(device.unusable, device.findings)
            lifecycle.record_device_outage(tx, node, device.uuid, device.unusable, finding)
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
    return reported.unusable_for(old.finding) if old.finding else reported.model_copy(update={"unusable": old.unusable})


def _quarantined(device: wire.Device, node: str, old: DeviceRecord | None) -> wire.Device:
    """Return the device, in quarantine if its driver tells of a fault with which nobody has returned it to use."""
    if device.fault is None or (old is not None and old.acknowledged == device.fault):
        return device
    command = f"yard nodes --return {node}:{device.index}"
    why = f"{lifecycle.QUARANTINED}{device.fault}, then `{command}` (for an administrator)"
    fault = wire.Finding.with_message(device.fault, device.findings) or _in_own_words(device.fault)
    return device.unusable_for(fault.model_copy(update={"message": why, "params": {**fault.params, "return": command}}))


def _in_own_words(fault: str) -> wire.Finding:
    return wire.Finding(code=wire.FindingCode.FAULT, message=fault, params={"said": fault})


def _of_findings(device: wire.Device, reported: wire.Device) -> wire.Device:
    """Return the device with the findings that something of it is made of, each once."""
    told = {device.unusable, device.fault, reported.unusable}
    found = {each.message: each for each in device.findings if each.message in told}
    return device.model_copy(update={"findings": tuple(found.values())})


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


def still_unusable(tx: Connection, node: str, devices: Sequence[wire.Device]) -> list[wire.Device]:
    """Return the devices, those of which nothing is told as the node has kept jobs from them before."""
    known = {record.uuid: record for record in DeviceRecord.each(tx.execute(_OF_NODE, {"node": node}))}
    return [device if device.unusable else _as_before(device, known.get(device.uuid)) for device in devices]


def _as_before(device: wire.Device, before: DeviceRecord | None) -> wire.Device:
    if before is None:
        return device
    findings = (*device.findings, *(before.findings or ()))
    return device.model_copy(update={"unusable": before.reported_unusable, "findings": findings})


def kept_from_strangers(tx: Connection, heartbeat: wire.Heartbeat) -> list[wire.Device]:
    """Return the devices, unusable where an attempt runs that is unknown here or was declared dead."""
    alive = [each for each in heartbeat.attempts if each.phase in _ALIVE]
    rows = tx.execute(_STATES, {"attempts": [each.attempt for each in alive]}) if alive else ()
    states = {row.id: row.state for row in rows}
    strangers = {
        uuid: _stranger(each.attempt, known=each.attempt in states)
        for each in alive
        if states.get(each.attempt, AttemptState.LOST) == AttemptState.LOST
        for uuid in each.devices
    }
    return [
        device.unusable_for(strangers[device.uuid]) if device.uuid in strangers else device
        for device in heartbeat.devices
    ]


def _stranger(attempt: AttemptId, *, known: bool) -> wire.Finding:
    which = "was declared dead" if known else "is unknown here"
    return wire.Finding(
        code=wire.FindingCode.DEAD_ATTEMPT if known else wire.FindingCode.UNKNOWN_ATTEMPT,
        message=f"attempt {attempt}, which {which}, runs on it: wait for its end, or end it on the node",
        params={"attempt": attempt},
    )
