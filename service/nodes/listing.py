"""Nodes as people see them: devices, who holds them, the last telemetry."""

from collections import defaultdict
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from service.db.models import Allocation, Attempt, Device, Job, Node, Sample, User
from service.infra.times import moment
from torchyard import api
from torchyard.wire import DeviceKind, Topology


def present(tx: Connection, name: str | None = None) -> list[api.Node]:
    """All nodes by name, or the one that is named."""
    query = select(Node.__table__).order_by(Node.name)
    rows = tx.execute(query if name is None else query.where(Node.name == name)).all()
    devices, holders = _devices(tx), _holders(tx)
    return [_node(row, _latest(tx, row.name), devices[row.name], holders) for row in rows]


def _node(
    row: Row[Any], latest: dict[str, float], devices: list[Row[Any]], holders: dict[tuple[str, str], list[api.Holder]]
) -> api.Node:
    return api.Node(
        name=row.name,
        state=_state(row),
        hostname=row.hostname,
        version=row.version,
        last_seen_at=None if row.last_seen_us is None else moment(row.last_seen_us),
        cpus=row.cpus,
        memory=row.memory,
        disk_free=row.disk_free,
        labels=row.labels or [],
        maintenance=row.maintenance,
        offenders=row.offenders,
        devices=[_device(device, holders[row.name, device.uuid], latest) for device in devices],
        latest=latest,
    )


def _state(row: Row[Any]) -> Literal["online", "draining", "unreachable"]:
    if row.unreachable or row.last_seen_us is None:
        return "unreachable"
    return "draining" if row.draining else "online"


def _device(device: Row[Any], holders: list[api.Holder], latest: dict[str, float]) -> api.NodeDevice:
    index = device._mapping["index"]
    first = holders[0] if holders else None
    memory_used = latest.get(f"{device.kind}.{index}.memory_used")
    return api.NodeDevice(
        uuid=device.uuid,
        index=index,
        kind=DeviceKind(device.kind),
        name=device.name,
        memory=device.memory,
        unusable=device.unusable,
        topology=Topology.model_validate(device.topology) if device.topology else None,
        job=first.job if first else None,
        job_number=first.job_number if first else None,
        job_name=first.job_name if first else None,
        user=first.user if first else None,
        holders=holders,
        utilization=latest.get(f"{device.kind}.{index}.utilization"),
        memory_used=None if memory_used is None else round(memory_used),
    )


def _devices(tx: Connection) -> dict[str, list[Row[Any]]]:
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in tx.execute(select(Device.__table__).where(Device.present).order_by(Device.node, Device.index)):
        found[row.node].append(row)
    return found


def _holders(tx: Connection) -> dict[tuple[str, str], list[api.Holder]]:
    about = (Job.id, Job.number, Job.name, User.name.label("user"), Allocation.share)
    query = (
        select(Allocation.node, Allocation.uuid, *about)
        .join(Attempt, Attempt.id == Allocation.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .join(User, User.id == Job.user_id)
        .where(Allocation.live)
        .order_by(Job.number)
    )
    found: dict[tuple[str, str], list[api.Holder]] = defaultdict(list)
    for row in tx.execute(query):
        holder = api.Holder(job=row.id, job_number=row.number, job_name=row.name, user=row.user, share=row.share)
        found[row.node, row.uuid].append(holder)
    return found


def _latest(tx: Connection, node: str) -> dict[str, float]:
    query = (
        select(Sample.values)
        .where(Sample.node == node, Sample.attempt_id == "")
        .order_by(Sample.time_us.desc())
        .limit(1)
    )
    return dict(tx.scalar(query) or {})
