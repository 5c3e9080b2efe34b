"""Holding nodes for a blocked job, so that the jobs behind it do not delay it for ever (`HoldKind`).

The nodes held are those where it is expected to start first, by the estimates and limits of the jobs that run there
(`ends`); where these tell nothing, those where the last job that must end began first. Other jobs may use devices that
it cannot use, devices that they free again before it could start, and devices that they can be preempted from.

For the oldest overdue job more is held, on the nodes where the youngest of the jobs in its way that cannot be preempted
began first:

- No such job starts there any more unless its time limit ends it in time, or it is expected to end before one in the
  way that was there before this job became the oldest (`oldest_since`). Once those have ended, which takes no longer
  than such a job runs, the start of the youngest in its way only moves back from decision to decision. So the idle time
  of a draining node is bounded, and so is the delay that wrong estimates cause the oldest job.
- Where it has to preempt others, it cannot start before its next turn (`order`): jobs may start there that are gone by
  then even if they take twice as long as expected. In its turn nobody starts there, and it preempts all that can be.
- Nodes that take too long to become free, beside the time for which it has waited, are not kept (`order.PATIENCE`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import NodeInfo
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import ClusterCapacity, Hold, HoldKind, PlacementRequest, choose, sorts
from service.scheduler.policy.trials import gone_us
from torchyard.ids import JobId


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """Moment at which a node is expected to have the free capacity for a job, and the jobs in its way until then."""

    node: str
    at_us: float
    #: Start of the youngest job in its way.
    youngest_us: float
    #: Expected end of the jobs in its way that had started by `Need.oldest_since_us`.
    expected_end_us: float
    #: Expected end of all jobs in its way that cannot be preempted; one of unknown length runs for as long again.
    drained_us: float
    #: Jobs are in its way that are preempted for it.
    preempts: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A blocked job, and the rules by which nodes are held for it."""

    request: PlacementRequest
    now_us: int
    kind: HoldKind
    #: It preempts the jobs in its way that can be preempted.
    may_preempt: bool
    #: Jobs on trial that are put back for it.
    put_back: frozenset[JobId]
    #: Since when it is the oldest overdue job (`oldest_since`).
    oldest_since_us: float = -math.inf
    #: No nodes are held that take longer to become free.
    patience_us: float = math.inf
    #: When its next turn begins: before, it preempts nobody.
    turn_us: float = -math.inf


def oldest_since(job: Waiting, state: SchedulerState, longest_wait_us: float, *, may_preempt: bool) -> float:
    """Return since when an overdue job is the oldest of them, as far as the jobs that still run show.

    That is when it became overdue, or when the last older job started that cannot be preempted.
    """
    older = (one for one in state.running.values() if one.eligible_us < job.eligible_us)
    starts = [one.since_us for one in older if not (may_preempt and one.preemptible)]
    return max([job.eligible_us + job.ran_us + longest_wait_us, *starts])


def hold_nodes(cluster: ClusterCapacity, state: SchedulerState, need: Need) -> bool:
    """Hold nodes for a blocked job; return False if there are too few to hold."""
    request = need.request
    if any(hold.job == request.job for hold in cluster.holds.values()):
        return True
    chosen = _chosen(cluster, state, need)
    if any(one.drained_us > need.now_us + need.patience_us for one in chosen):
        return False
    until_us = max((one.at_us for one in chosen), default=math.inf)
    for one in chosen:
        cluster.holds[one.node] = Hold(
            job=request.job,
            kind=need.kind,
            uuids=_wanted(cluster, one.node, request),
            cpus=request.resources.cpus,
            memory=request.resources.memory,
            until_us=until_us,
            expected_end_us=max(one.expected_end_us for one in chosen),
            turn_us=need.turn_us if any(one.preempts for one in chosen) else -math.inf,
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
    if need.kind is HoldKind.FIRST_BLOCKED:
        return one.at_us, one.youngest_us, one.node
    return one.youngest_us, one.preempts, one.node


def _could_hold(capacity: NodeCapacity, cluster: ClusterCapacity, request: PlacementRequest) -> bool:
    """Return whether the job fits on the node once all others have left it, as far as reservations allow."""
    masked = cluster.mask(request, capacity)
    usable = capacity.info.usable
    if masked is None or capacity.info.outdated(request.resources) or not usable.could_hold(request.resources):
        return False
    return not masked or choose(NodeCapacity(capacity.info), request.resources, masked) is not None


def opening(capacity: NodeCapacity, state: SchedulerState, need: Need, cluster: ClusterCapacity) -> Opening:
    """Return when the node will have the free capacity for the job.

    The jobs that run there are taken to end as expected, or at their time limits if only these count.
    """
    freed = ClusterCapacity(capacities={capacity.info.name: capacity}, mask=cluster.mask)
    running = [state.running[job] for job in capacity.jobs if job in state.running]
    at_us = drained_us = float(need.now_us)
    youngest_us, expected_end_us, preempts = 0.0, -math.inf, False
    for job in sorted(running, key=lambda job: _leaves(job, need)):
        if freed.fits(need.request, capacity.info.name):
            break
        freed.release(job)
        at_us = max(at_us, _end(job, need))
        if _makes_room(job, need):
            preempts |= job.job not in need.put_back
            continue
        youngest_us, likely_us = max(youngest_us, job.since_us), end_us(job, "p90_us", need.now_us)
        drained_us = max(drained_us, likely_us if likely_us < math.inf else 2 * need.now_us - job.since_us)
        if job.since_us <= need.oldest_since_us and likely_us < math.inf:
            expected_end_us = max(expected_end_us, likely_us)
    return Opening(
        node=capacity.info.name,
        at_us=at_us,
        youngest_us=youngest_us,
        expected_end_us=expected_end_us,
        drained_us=drained_us,
        preempts=preempts,
    )


def _leaves(job: Running, need: Need) -> tuple[float, float, str]:
    """Return the sort key of the order in which jobs are expected to leave the node."""
    if need.kind is not HoldKind.FIRST_BLOCKED:
        return 0 if _makes_room(job, need) else 1, job.since_us, job.job
    return _end(job, need), job.since_us, job.job


def _makes_room(job: Running, need: Need) -> bool:
    """Return whether the job is stopped for the blocked one: put back, or preempted."""
    return job.job in need.put_back or (need.may_preempt and job.preemptible)


def _end(job: Running, need: Need) -> float:
    if _makes_room(job, need):
        return gone_us(job, need.now_us) if job.job in need.put_back else need.now_us
    if need.kind is not HoldKind.FIRST_BLOCKED:
        return math.inf if job.ends_us is None else max(job.ends_us, need.now_us)
    return max(end_us(job, "p90_us", need.now_us), need.now_us)


def _wanted(cluster: ClusterCapacity, node: str, request: PlacementRequest) -> frozenset[str]:
    """Return the slots to hold: free ones if they suffice, else all that the job could use."""
    capacity = cluster.capacities[node]
    masked = cluster.mask(request, capacity) or frozenset()
    slots = choose(capacity, request.resources, masked)
    if slots is not None:
        return frozenset(slot.uuid for slot in slots)
    return frozenset(slot.uuid for slot in capacity.usable.values() if slot.suits(request.resources)) - masked
