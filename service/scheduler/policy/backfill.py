"""What is held for a job that is blocked, so that those behind it do not hold it off for ever.

Held are the nodes where it can start first, by what is known of the jobs that run there (`ends`), and where
nothing is known, where the last job that must end began first. Others may have what it cannot use, what they leave
again before it could start, and what they can be made to leave.

For the oldest job that is overdue, more is held. Its nodes are those where the youngest of the jobs in its way that
cannot be stopped began first. No such job starts there any more unless its limit ends it in time; or unless it is
expected to be gone before one in the way that was there when this job became the oldest (`oldest_since`). So once these
are gone, which takes no longer than such a job runs, that moment only moves back from decision to decision: what the
node does not do while it drains is bounded, and so is what wrong estimates do to the oldest. In its turn (`order`)
nobody at all starts there, and it stops all others.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import ClusterCapacity, Hold, PlacementRequest, choose, sorts


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """When a node will have room for a job: at the earliest, and since when the youngest job in its way has run."""

    node: str
    at_us: float
    youngest_us: float
    #: When those in its way are expected to be gone that were there by `Need.since_us`.
    hoped_us: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A blocked job."""

    request: PlacementRequest
    now_us: int
    #: Only what is certain counts: it is the oldest that is overdue, or it is its turn.
    surely: bool = False
    #: It may stop jobs that can be stopped.
    may_preempt: bool = False
    #: Those may have what is held meanwhile.
    lent: bool = True
    #: Since when it is the oldest that is overdue (`oldest_since`).
    since_us: float = -math.inf


def oldest_since(job: Waiting, state: SchedulerState, longest_wait_us: float, *, may_preempt: bool) -> float:
    """Since when an overdue job is the oldest of them, as far as what runs still tells: since it is overdue, or the
    last older one started that cannot be stopped.
    """
    older = (one for one in state.running.values() if one.eligible_us < job.eligible_us)
    starts = [one.since_us for one in older if not (may_preempt and one.preemptible)]
    return max([job.eligible_us + job.ran_us + longest_wait_us, *starts])


def hold_nodes(cluster: ClusterCapacity, state: SchedulerState, need: Need) -> bool:
    """Hold nodes for a blocked job; False if there are too few to hold."""
    request = need.request
    if any(hold.job == request.job for hold in cluster.holds.values()):
        return True
    chosen = _chosen(cluster, state, need)
    until_us = max((one.at_us for one in chosen), default=math.inf)
    for one in chosen:
        cluster.holds[one.node] = Hold(
            job=request.job,
            uuids=_wanted(cluster, one.node, request),
            cpus=request.resources.cpus,
            memory=request.resources.memory,
            until_us=until_us,
            surely=need.surely,
            lent=need.lent,
            hoped_us=max(one.hoped_us for one in chosen),
        )
    return bool(chosen)


def _chosen(cluster: ClusterCapacity, state: SchedulerState, need: Need) -> list[Opening]:
    able = [
        capacity.info
        for node, capacity in cluster.capacities.items()
        if node not in cluster.holds and _could_hold(capacity, cluster, need.request)
    ]
    choices = [_best(cluster, state, same, need) for same in sorts(able, need.request.resources)]
    complete = [chosen for chosen in choices if len(chosen) == need.request.nodes]
    return min(complete, key=lambda chosen: max(_rank(one, need) for one in chosen), default=[])


def _best(cluster: ClusterCapacity, state: SchedulerState, infos: Iterable[NodeInfo], need: Need) -> list[Opening]:
    openings = [opening(cluster.capacities[info.name], state, need, cluster) for info in infos]
    return sorted(openings, key=lambda one: _rank(one, need))[: need.request.nodes]


def _rank(one: Opening, need: Need) -> tuple[float, float, str]:
    return (one.youngest_us, 0, one.node) if need.surely else (one.at_us, one.youngest_us, one.node)


def _could_hold(capacity: NodeCapacity, cluster: ClusterCapacity, request: PlacementRequest) -> bool:
    """Whether the job fits there once all others are gone, as far as reservations let it."""
    masked = cluster.mask(request, capacity)
    if (
        masked is None
        or capacity.info.outdated(request.resources)
        or capacity.info.usable.lack(request.resources) is not None
    ):
        return False
    return not masked or choose(NodeCapacity(capacity.info), request.resources, masked) is not None


def opening(capacity: NodeCapacity, state: SchedulerState, need: Need, cluster: ClusterCapacity) -> Opening:
    """When the node will have room for the job, if those that run there end as expected, or as they must."""
    trial = _NodeTrial(capacity, need.request.resources, cluster.mask(need.request, capacity) or frozenset())
    running = [state.running[job] for job in capacity.jobs if job in state.running]
    at_us, youngest_us, hoped_us = float(need.now_us), 0.0, -math.inf
    for job in sorted(running, key=lambda job: _turn(job, need)):
        if trial.fits():
            break
        trial.without(job)
        at_us = max(at_us, _end(job, need))
        if not _is_preempted(job, need):
            youngest_us = max(youngest_us, job.since_us)
            if job.since_us <= need.since_us and (likely_us := end_us(job, "p90_us", need.now_us)) < math.inf:
                hoped_us = max(hoped_us, likely_us)
    return Opening(node=capacity.info.name, at_us=at_us, youngest_us=youngest_us, hoped_us=hoped_us)


class _NodeTrial:
    """A node that jobs leave, until another fits."""

    def __init__(self, capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str]) -> None:
        self._room, self._resources, self._masked = capacity, resources, masked
        #: Only the number of free slots counts, which is quicker to find than the slots.
        self._counts = resources.countable and not masked and not capacity.shared
        self._free = set(capacity.free)
        if not self._counts:
            self._room = capacity.copy()

    def fits(self) -> bool:
        if self._counts:
            return len(self._free) >= self._resources.gpus
        return self._room.roomy(self._resources) and choose(self._room, self._resources, self._masked) is not None

    def without(self, job: Running) -> None:
        for placement in job.placements:
            if placement.node != self._room.info.name:
                continue
            if self._counts:
                self._free.update(uuid for uuid in placement.uuids if uuid in self._room.usable)
            else:
                self._room.release(job.job, job.resources, placement.uuids)


def _turn(job: Running, need: Need) -> tuple[float, float, str]:
    """Who is out of the way first."""
    if need.surely:
        return 0 if _is_preempted(job, need) else 1, job.since_us, job.job
    return _end(job, need), job.since_us, job.job


def _is_preempted(job: Running, need: Need) -> bool:
    return need.surely and need.may_preempt and job.preemptible


def _end(job: Running, need: Need) -> float:
    if _is_preempted(job, need):
        return need.now_us
    if need.surely:
        return math.inf if job.ends_us is None else max(job.ends_us, need.now_us)
    return max(end_us(job, "p90_us", need.now_us), need.now_us)


def _wanted(cluster: ClusterCapacity, node: str, request: PlacementRequest) -> frozenset[str]:
    """The free slots if they suffice, else all that it could use."""
    capacity = cluster.capacities[node]
    masked = cluster.mask(request, capacity) or frozenset()
    slots = choose(capacity, request.resources, masked)
    if slots is not None:
        return frozenset(slot.uuid for slot in slots)
    return frozenset(slot.uuid for slot in capacity.usable.values() if slot.suits(request.resources)) - masked
