"""Nodes as people see them: devices, who holds them, the last telemetry."""

from collections import defaultdict
from typing import Any, Final, Literal

from sqlalchemy import Connection, Select, bindparam, select

from service.db.engine import Database
from service.db.models import Allocation, Attempt, Device, Job, Node, Sample, User
from service.db.records.nodes import DeviceRecord, NodeRecord
from service.errors import not_found
from service.identity.callers import Caller
from service.identity.visibility import may_read, shown_name
from service.infra.times import moment
from torchyard import api
from torchyard.wire import Capability

#: Words of the API for what a node's kernel enforces.
_LIMITS: Final[dict[Literal["memory", "cpus", "processes", "gpus", "network"], Capability]] = {
    "memory": Capability.MEMORY_LIMIT,
    "cpus": Capability.CPU_LIMIT,
    "processes": Capability.PROCESS_LIMIT,
    "gpus": Capability.GPU_LIMIT,
    "network": Capability.NETWORK_ISOLATION,
}


_NODES: Select[Any] = select(Node.__table__).order_by(Node.name)
_BY_NAME: Select[Any] = select(Node.__table__).where(Node.name == bindparam("name"))
_DEVICES: Select[Any] = select(Device.__table__).where(Device.present).order_by(Device.node, Device.index)
_HOLDERS = (
    select(
        Allocation.node,
        Allocation.uuid,
        Job.id,
        Job.number,
        Job.name,
        Job.user_id,
        Job.project,
        User.name.label("user"),
        Allocation.share,
    )
    .join(Attempt, Attempt.id == Allocation.attempt_id)
    .join(Job, Job.id == Attempt.job_id)
    .join(User, User.id == Job.user_id)
    .where(Allocation.live)
    .order_by(Job.number)
)
_NEWEST_SAMPLE: Select[Any] = (
    select(Sample.values)
    .where(Sample.node == bindparam("node"), Sample.attempt_id == "")
    .order_by(Sample.time_us.desc())
    .limit(1)
)


def list_nodes(db: Database, caller: Caller) -> list[api.Node]:
    """Return all nodes, by name, without names of jobs that the caller may not read."""
    return _present(db, caller, _NODES)


def get_node(db: Database, caller: Caller, name: str) -> api.Node:
    """Return a node by name; ``not-found`` for an unknown one."""
    found = _present(db, caller, _BY_NAME, name=name)
    if not found:
        raise not_found("node", name)
    return found[0]


def _present(db: Database, caller: Caller, query: Select[Any], **parameters: str) -> list[api.Node]:
    with db.read() as tx:
        nodes = NodeRecord.all(tx.execute(query, parameters))
        devices, holders = _devices(tx), _holders(tx, caller)
        return [_node(node, _latest(tx, node.name), devices[node.name], holders) for node in nodes]


def _node(
    node: NodeRecord,
    latest: dict[str, float],
    devices: list[DeviceRecord],
    holders: dict[tuple[str, str], list[api.Holder]],
) -> api.Node:
    return api.Node(
        name=node.name,
        state=state(node),
        hostname=node.hostname,
        version=node.version,
        last_seen_at=None if node.last_seen_us is None else moment(node.last_seen_us),
        cpus=node.cpus,
        memory=node.memory,
        disk_free=node.disk_free,
        labels=node.labels or [],
        enforced=[word for word, limit in _LIMITS.items() if limit in (node.capabilities or ())],
        unenforced=node.unenforced,
        unenforced_finding=node.unenforced_finding,
        draining=node.draining,
        maintenance=node.maintenance,
        drain_message=node.drain_message,
        offenders=node.offenders,
        offender_findings=list(node.offender_findings or ()),
        devices=[_device(device, holders[node.name, device.uuid], latest) for device in devices],
        latest=latest,
    )


def with_devices(tx: Connection) -> list[tuple[NodeRecord, list[DeviceRecord]]]:
    """Return all nodes, by name, each with the devices that it has now, by index."""
    nodes, devices = NodeRecord.all(tx.execute(_NODES)), _devices(tx)
    return [(node, devices[node.name]) for node in nodes]


def state(node: NodeRecord) -> Literal["online", "draining", "unreachable"]:
    """Return whether a node takes jobs, takes none, or is not heard of."""
    if node.unreachable or node.last_seen_us is None:
        return "unreachable"
    return "draining" if node.draining else "online"


def _device(device: DeviceRecord, holders: list[api.Holder], latest: dict[str, float]) -> api.NodeDevice:
    series = f"{device.kind}.{device.index}"
    first = holders[0] if holders else None
    memory_used = latest.get(f"{series}.memory_used")
    return api.NodeDevice(
        uuid=device.uuid,
        index=device.index,
        kind=device.kind,
        name=device.name,
        memory=device.memory,
        foreign_memory=device.foreign_memory,
        unusable=device.unusable,
        finding=device.finding,
        topology=device.topology,
        job=first.job if first else None,
        job_number=first.job_number if first else None,
        job_name=first.job_name if first else None,
        user=first.user if first else None,
        holders=holders,
        utilization=latest.get(f"{series}.utilization"),
        memory_used=None if memory_used is None else round(memory_used),
    )


def _devices(tx: Connection) -> dict[str, list[DeviceRecord]]:
    found: dict[str, list[DeviceRecord]] = defaultdict(list)
    for device in DeviceRecord.each(tx.execute(_DEVICES)):
        found[device.node].append(device)
    return found


def _holders(tx: Connection, caller: Caller) -> dict[tuple[str, str], list[api.Holder]]:
    found: dict[tuple[str, str], list[api.Holder]] = defaultdict(list)
    for row in tx.execute(_HOLDERS):
        name = shown_name(caller, row, row.name)
        holder = api.Holder(
            job=row.id,
            job_number=row.number,
            job_name=name,
            readable=may_read(caller, row),
            user=row.user,
            share=row.share,
        )
        found[row.node, row.uuid].append(holder)
    return found


def _latest(tx: Connection, node: str) -> dict[str, float]:
    return dict(tx.scalar(_NEWEST_SAMPLE, {"node": node}) or {})
