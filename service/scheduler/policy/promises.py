"""Placement of jobs that others were preempted for."""

from collections.abc import Sequence

from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest


def soon(state: SchedulerState, cluster: ClusterCapacity, preemptor: str) -> ClusterCapacity:
    """Return the free capacity once the jobs that are being preempted for this one have left."""
    return cluster.without(state.running[victim] for victim in state.victims.get(preemptor, ()))


def sparing(
    state: SchedulerState, cluster: ClusterCapacity, requests: Sequence[PlacementRequest]
) -> list[tuple[PlacementRequest, tuple[Placement, ...]]]:
    """Return the requests in the order in which they are to be placed, with placements where a certain one is needed.

    Mostly that is their own order, each placed wherever there is capacity. If more of them can be placed that way,
    those come first that would lose the only suitable devices to one before them, and one of them gets a certain
    placement: otherwise jobs would have been preempted for them in vain.
    """
    order, lost = _in_best_order(state, cluster, requests)
    for request in order if lost else ():
        others = [other for other in order if other is not request]
        for placements in cluster.all_placements(request):
            left = cluster.copy()
            left.take(request.job, request.resources, placements)
            if len(_losers(state, left, others)) < len(lost):
                return [(request, placements), *((other, ()) for other in others)]
    return [(request, ()) for request in order]


def _in_best_order(
    state: SchedulerState, cluster: ClusterCapacity, requests: Sequence[PlacementRequest]
) -> tuple[list[PlacementRequest], list[PlacementRequest]]:
    """Return the order, of those tried, in which the fewest requests find no placement, and these requests."""
    tried, moved = list(requests), set[str]()
    lost = _losers(state, cluster, tried) if len(tried) > 1 else []
    best, fewest = tried, lost
    while (request := next((request for request in lost if request.job not in moved), None)) is not None:
        moved.add(request.job)
        tried = [request, *(other for other in tried if other is not request)]
        lost = _losers(state, cluster, tried)
        if len(lost) < len(fewest):
            best, fewest = tried, lost
    return best, fewest


def _losers(
    state: SchedulerState, cluster: ClusterCapacity, requests: Sequence[PlacementRequest]
) -> list[PlacementRequest]:
    left, lost = cluster.copy(), list[PlacementRequest]()
    for request in requests:
        placements = left.find(request) or soon(state, left, request.job).find(request)
        if placements:
            left.take(request.job, request.resources, placements)
        else:
            lost.append(request)
    return lost
