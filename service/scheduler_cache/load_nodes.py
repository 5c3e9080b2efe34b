"""The nodes as the policy sees them; what has not changed stays the same object."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter
from sqlalchemy import Connection, Select, String, Table, select
from sqlalchemy import cast as sql_cast

from service.db.models import Device, Node
from service.db.records.nodes import StoredTopology
from service.scheduler.model.nodes import ClosedReason, LinkType, LowDisk, NodeInfo, Slot
from torchyard.quantities import format_size
from torchyard.wire import Capability, Finding

_NODE = cast("Table", Node.__table__).c
_DEVICE = cast("Table", Device.__table__).c


_FINDINGS = TypeAdapter(list[Finding])


class _LoadedNode(NamedTuple):
    name: str
    cpus: int
    memory: int
    labels: list[str] | None
    capabilities: list[str] | None
    draining: bool
    unreachable: bool
    last_seen_us: int | None
    disk_free: int
    disk_floor: int | None
    maintenance: str | None
    drain_message: str | None


#: A row of `_DEVICES`.
_LoadedDevice = tuple[str, str, int, int, str, str | None, str, str | None, int | None, str | None]

_NODES: Select[Any] = select(*(_NODE[name] for name in _LoadedNode._fields)).order_by(_NODE.name)
#: Topology and findings as text: they are compared each time, and read only where they have changed.
_DEVICES: Select[Any] = (
    select(
        _DEVICE.node,
        _DEVICE.uuid,
        _DEVICE["index"],
        _DEVICE.memory,
        _DEVICE.kind,
        _DEVICE.unusable,
        _DEVICE.name,
        sql_cast(_DEVICE.topology, String),
        _DEVICE.foreign_memory,
        sql_cast(_DEVICE.findings, String),
    )
    .where(_DEVICE.present)
    .order_by(_DEVICE.node, _DEVICE["index"])
)


class NodeLoader:
    """Reads nodes and devices; not for several threads at once."""

    def __init__(self, disk_floor: int, free: Callable[[], int] | None) -> None:
        self.disk_floor = disk_floor
        self._free = free
        self._short = False
        self._known: dict[str, tuple[tuple[Any, ...], NodeInfo]] = {}

    def read(self, tx: Connection) -> dict[str, NodeInfo]:
        """Return all nodes by name."""
        self._short = self._free is not None and self._free() < self.disk_floor
        devices: dict[str, list[_LoadedDevice]] = {}
        for row in tx.execute(_DEVICES):
            devices.setdefault(row[0], []).append(cast("_LoadedDevice", row))
        nodes = map(_LoadedNode._make, tx.execute(_NODES))
        known = {node.name: self._info(node, tuple(devices.get(node.name, ()))) for node in nodes}
        self._known = known
        return {name: info for name, (_, info) in known.items()}

    def _info(self, node: _LoadedNode, devices: tuple[_LoadedDevice, ...]) -> tuple[tuple[Any, ...], NodeInfo]:
        closed, labels = self._closed(node), frozenset(node.labels or ())
        low_disk = self._low_disk(node) if closed is ClosedReason.DISK_FLOOR else None
        words = node.capabilities or ()
        knows = {
            "knows_shares": Capability.GPU_SHARE in words,
            "knows_secrets": Capability.SECRETS in words,
            "knows_warm_start": Capability.WARM_START in words,
            "isolates": Capability.NETWORK_ISOLATION in words,
        }
        drains = node.maintenance, node.drain_message
        key = (node.cpus, node.memory, labels, knows, closed, low_disk, drains, devices)
        known = self._known.get(node.name)
        if known is not None and known[0] == key:
            return known
        info = NodeInfo(
            name=node.name,
            slots=tuple(_slot(device) for device in devices),
            cpus=node.cpus,
            memory=node.memory,
            closed=closed,
            low_disk=low_disk,
            labels=labels,
            maintenance=node.maintenance,
            drain_message=node.drain_message,
            **knows,
        )
        return key, info

    def _closed(self, node: _LoadedNode) -> ClosedReason | None:
        if node.draining:
            return ClosedReason.DRAINING
        if node.unreachable or node.last_seen_us is None:
            return ClosedReason.UNREACHABLE
        if node.disk_free < self._floor(node):
            return ClosedReason.DISK_FLOOR
        return ClosedReason.SERVICE_DISK if self._short else None

    def _floor(self, node: _LoadedNode) -> int:
        return self.disk_floor if node.disk_floor is None else node.disk_floor

    def _low_disk(self, node: _LoadedNode) -> LowDisk:
        return LowDisk(format_size(node.disk_free), format_size(self._floor(node)))


def _slot(device: _LoadedDevice) -> Slot:
    _, uuid, index, memory, kind, unusable, name, topology, foreign, findings = device
    near = StoredTopology.model_validate_json(topology) if topology else StoredTopology()
    return Slot(
        uuid=uuid,
        index=index,
        memory=memory - (foreign or 0),
        kind=kind,
        unusable=unusable,
        finding=_finding(unusable, findings),
        name=name,
        numa=near.numa,
        links={uuid: LinkType[level.name] for uuid, level in near.links.items()},
    )


def _finding(message: str | None, findings: str | None) -> dict[str, Any] | None:
    if message is None or findings is None:
        return None
    found = Finding.with_message(message, _FINDINGS.validate_json(findings))
    return None if found is None else found.model_dump(mode="json")
