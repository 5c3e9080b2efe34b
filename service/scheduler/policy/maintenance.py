"""Maintenance of nodes: which drain for one, and when they take jobs again. Pure."""

import math
from collections.abc import Collection, Iterable
from typing import Protocol

from service.scheduler.model.nodes import NodeInfo
from service.scheduler.model.state import SchedulerState


class Window(Protocol):
    """A reservation or a maintenance, as the scheduler knows it or as it is stored."""

    @property
    def id(self) -> str: ...
    @property
    def maintenance(self) -> bool: ...
    @property
    def starts_us(self) -> int: ...
    @property
    def ends_us(self) -> int: ...
    @property
    def nodes(self) -> Collection[str]: ...


def drains(windows: Iterable[Window], lead_us: int, now_us: int) -> dict[str, str]:
    """Return the nodes of maintenances that have begun, or begin within `lead_us`, with their ids; of two, the earlier.

    So long before, the nodes drain: their jobs save their work and wait elsewhere.
    """
    near = [one for one in windows if one.maintenance and one.starts_us <= now_us + lead_us and one.ends_us > now_us]
    return {node: one.id for one in sorted(near, key=lambda one: -one.starts_us) for node in one.nodes}


def takes_jobs_us(state: SchedulerState, info: NodeInfo) -> float:
    """Return when a draining node takes jobs again: after its maintenance and those that follow without a gap.

    0 if that is over already; infinite if an administrator must resume the node.
    """
    if info.maintenance is None:
        return math.inf
    coming = [r for r in state.reservations if r.maintenance and info.name in r.nodes]
    end_us = next((r.ends_us for r in coming if r.id == info.maintenance), 0)
    for each in sorted(coming, key=lambda r: r.starts_us):
        if each.starts_us <= end_us:
            end_us = max(end_us, each.ends_us)
    return end_us
