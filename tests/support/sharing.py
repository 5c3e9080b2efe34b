"""Small states for the policy: nodes named a, b, …, jobs named j1, j2, … of users ada, bob, …"""

from typing import Any

from service.scheduler.model.jobs import Estimate, EstimateSource, Running, Waiting
from service.scheduler.model.nodes import ClosedReason, NodeInfo, Placement, ResourceRequest, Slot
from service.scheduler.model.state import SchedulerState

GIB = 2**30
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOW = 1_700_000_040 * SECOND


def node(
    name: str = "a", gpus: int = 4, memory: int = 80, kind: str = "A100", closed: ClosedReason | None = None
) -> NodeInfo:
    """A node; memory of its GPUs in GiB."""
    slots = tuple(Slot(uuid=f"{name}{n}", index=n, memory=memory * GIB, name=kind) for n in range(gpus))
    return NodeInfo(name=name, slots=slots, cpus=32, memory=256 * GIB, closed=closed)


def lasting(minutes: float) -> Estimate:
    """Half of the jobs like this take so long, one in ten half of it, nine in ten no more than double."""
    p50 = round(minutes * MINUTE)
    return Estimate(p10_us=p50 // 2, p50_us=p50, p90_us=2 * p50, source=EstimateSource.HISTORY)


def waits(number: int, gpus: int = 1, minutes: float | None = 60, **values: Any) -> Waiting:
    """A job that came a minute before those with the next number."""
    fields: dict[str, Any] = {"job": f"j{number}", "user": "ada", "project": "vision", "priority": 1}
    resources = ResourceRequest(
        gpus=gpus, **{key: values.pop(key) for key in ResourceRequest.__dataclass_fields__ if key in values}
    )
    since = NOW - HOUR + number * MINUTE
    known = None if minutes is None else lasting(minutes)
    fields |= {"number": number, "resources": resources, "eligible_us": since, "remaining": known}
    return Waiting(**fields | values)


def runs(number: int, *devices: str, minutes: float | None = 60, **values: Any) -> Running:
    """A job on whole devices such as ``a0``; it started ten minutes ago and was estimated just now."""
    by_node: dict[str, list[str]] = {}
    for device in devices:
        by_node.setdefault(device[0], []).append(device)
    placements = tuple(Placement(node=name, uuids=tuple(uuids)) for name, uuids in by_node.items())
    fields = {"job": f"j{number}", "user": "bob", "project": "vision", "priority": 1}
    resources = ResourceRequest(gpus=len(devices) // max(1, len(placements)), gpu_share=values.pop("gpu_share", 0))
    given: dict[str, Any] = {"resources": resources, "nodes": len(placements), "placements": placements}
    given["since_us"] = NOW - 10 * MINUTE
    given["eligible_us"] = given["since_us"]
    known = None if minutes is None else lasting(minutes)
    return Running(**{**fields, "number": number, **given, "remaining": known, **values})


def state(*jobs: Waiting | Running, nodes: tuple[NodeInfo, ...] = (node(),), **values: Any) -> SchedulerState:
    """What the policy knows."""
    made = SchedulerState(nodes={each.name: each for each in nodes}, **values)
    made.put(jobs)
    return made
