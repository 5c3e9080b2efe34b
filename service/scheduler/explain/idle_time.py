"""GPU time that nobody used although a waiting job would have fitted: avoidable, kept for a blocked job, or reserved.

Pure.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from service.scheduler.explain.fit import enough
from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest
from service.scheduler.policy.quotas import RemainingQuotas, spent
from service.scheduler.policy.requests import placement_request
from torchyard.ids import JobId
from torchyard.spec.policy import Policy


class IdleGpus(NamedTuple):
    """Idle GPUs at one moment, or their GPU time in microseconds."""

    avoidable: int = 0
    kept: int = 0
    #: Reserved for others, or on a node that drains for a maintenance.
    reserved: int = 0


class IdleTime:
    """Idle GPU time, in GPU-microseconds: what is idle at one look is taken to be idle until the next."""

    def __init__(self, since_us: int = 0) -> None:
        self.avoidable_us = self.kept_us = self.reserved_us = 0
        self._since_us = since_us
        self._idle = IdleGpus()

    def look(self, idle: IdleGpus, now_us: int) -> IdleGpus:
        """Count the time since the last look and return it; `idle` are the GPUs that are idle from now on."""
        passed_us, self._since_us = max(now_us - self._since_us, 0), now_us
        found = IdleGpus(*(passed_us * gpus for gpus in self._idle))
        self.avoidable_us += found.avoidable
        self.kept_us += found.kept
        self.reserved_us += found.reserved
        self._idle = idle
        return found


def idle_gpus(
    state: SchedulerState,
    cluster: ClusterCapacity,
    now_us: int,
    policy: Policy,
    decided: AbstractSet[JobId] = frozenset(),
) -> IdleGpus:
    """Return the GPUs that are idle: free, while a job waits that no quota holds back and that would fit on them if
    nothing were held or reserved.

    `decided` are jobs whose GPUs are taken in `cluster` already.
    """
    free = {node: capacity for node, capacity in cluster.capacities.items() if capacity.free}
    drained = _drained(state) if cluster.reserved else {}
    if not state.waiting or not (free or drained):
        return IdleGpus()
    requests = [
        placement_request(state.waiting[job], now_us, policy) for job in _unlike(state, cluster, now_us, decided)
    ]
    usable = _usable(ClusterCapacity(capacities=free, mask=cluster.mask), requests)
    kept = sum(len(uuids & cluster.holds[node].uuids) for node, uuids in usable.items() if node in cluster.holds)
    found = sum(map(len, usable.values()))
    anyway = _usable(ClusterCapacity(capacities=free | drained), requests) if cluster.reserved else usable
    return IdleGpus(found - kept, kept, sum(map(len, anyway.values())) - found)


def _drained(state: SchedulerState) -> dict[str, NodeCapacity]:
    """Return the nodes with free GPUs that drain for a maintenance."""
    capacities = state.capacities().items()
    return {node: capacity for node, capacity in capacities if capacity.info.maintenance is not None and capacity.free}


def _usable(anything: ClusterCapacity, requests: Iterable[PlacementRequest]) -> dict[str, set[str]]:
    """Return the free slots of each node that one of the jobs could have."""
    usable: dict[str, set[str]] = {}
    for request in requests:
        for node, uuids in _fitting(anything, request):
            usable.setdefault(node, set()).update(uuids)
        if not anything.reserved and len(usable) == len(anything.capacities):
            break
    return usable


def _unlike(state: SchedulerState, cluster: ClusterCapacity, now_us: int, decided: AbstractSet[JobId]) -> list[JobId]:
    """Return waiting jobs that no quota holds back, one for all that fit alike."""
    table, classes = state.table, state.classes
    rows = table.queued()
    if decided:
        rows = rows[~np.isin(rows, [table.rows[job] for job in decided])]
    numbers = table.class_id[rows]
    wanted = (classes.gpus[numbers] > 0) & ~spent(RemainingQuotas(state, now_us), state)[numbers]
    rows, numbers = rows[wanted], numbers[wanted]
    alike = numbers if cluster.reserved else classes.kind[numbers]
    return [table.jobs[row] for row in rows[np.unique(alike, return_index=True)[1]]]


def _fitting(cluster: ClusterCapacity, request: PlacementRequest) -> Iterable[tuple[str, AbstractSet[str]]]:
    """Return the nodes on which the job fits, with the free slots there that it may have; none if they are too few."""
    least = 1 if request.resources.gpu_share else request.resources.gpus
    nodes = [
        node
        for node, capacity in cluster.capacities.items()
        if len(capacity.free) >= least and cluster.placement(request, node) is not None
    ]
    if not enough([cluster.capacities[node].info for node in nodes], request.resources, request.nodes):
        return []
    return [
        (node, cluster.capacities[node].free.keys() - (cluster.mask(request, cluster.capacities[node]) or ()))
        for node in nodes
    ]
