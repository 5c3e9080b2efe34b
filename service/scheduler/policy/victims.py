"""Search for the cheapest set of jobs to preempt, and the nodes where one job then starts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from service.scheduler.model.decisions import Cause
from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import Placement
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest, sorts


class Victim(NamedTuple):
    """A running job that may be preempted, with what hundreds of preemptors compare, computed once."""

    job: Running
    cause: Cause
    #: Sort key of the order in which victims are chosen; of equals, the last in the jobs' order comes first.
    turn: tuple[int, int]
    cost: tuple[float, float, int]

    @classmethod
    def of(cls, job: Running, cause: Cause, score: float, unsaved_us: int) -> Self:
        """Return the victim: its score in the jobs' order, and its running time since its newest checkpoint."""
        gpus = job.gpus
        near = math.sqrt(gpus) / max(score, 1.0)
        if cause is Cause.TIME_SLICE:
            return cls(job, cause, (1, 0), (0.0, near, gpus))
        # Over their share alone, and not clearly behind: they would soon start again by preempting others in turn.
        turn = (2 if cause is Cause.SHARE else 0, unsaved_us)
        return cls(job, cause, turn, (unsaved_us * gpus, near, gpus))


@dataclass(frozen=True, kw_only=True, slots=True)
class PreemptionPlan:
    """The victims, and where the preemptor starts once they have left."""

    victims: tuple[Victim, ...]
    placements: tuple[Placement, ...]


def _cost(victims: Iterable[Victim]) -> tuple[float, float, int]:
    """Return the cost of preempting these: work that might be lost, then how nearly done they are, then their GPUs.

    Of nearly done jobs both the number counts and the GPUs, on which each restart costs time: weighting with the root
    of the GPUs led to fewer preemptions than with the GPUs, and to less time lost than with the number alone.
    """
    lost, near, gpus = 0.0, 0.0, 0
    for victim in victims:
        one = victim.cost
        lost, near, gpus = lost + one[0], near + one[1], gpus + one[2]
    return lost, near, gpus


def on_one_node(
    request: PlacementRequest, by_node: dict[str, list[Victim]], cluster: ClusterCapacity
) -> PreemptionPlan | None:
    """Return the cheapest plan on a single node after which the preemptor really starts; None if there is none."""
    chosen = {
        node: victims
        for node, found in by_node.items()
        if node in cluster.capacities and (victims := _counted(request, node, found, cluster)) is not None
    }
    for node in sorted(chosen, key=lambda node: (_cost(chosen[node]), node)):
        plan = _stopping(request, node, chosen[node], cluster) if _countable(request) else None
        if plan is not None:
            return plan
        fewest = _fewest(request, node, by_node[node], cluster)
        if fewest is not None:
            return _stopping(request, node, fewest, cluster)
    return None


def _countable(request: PlacementRequest) -> bool:
    """Return whether it asks for whole GPUs: what shares them, or needs none, cannot be counted."""
    return bool(request.resources.gpus and not request.resources.gpu_share)


def _stopping(
    request: PlacementRequest, node: str, victims: Sequence[Victim], cluster: ClusterCapacity
) -> PreemptionPlan | None:
    placement = cluster.without(victim.job for victim in victims).placement(request, node)
    return None if placement is None else PreemptionPlan(victims=tuple(victims), placements=(placement,))


def _counted(
    request: PlacementRequest, node: str, victims: Sequence[Victim], cluster: ClusterCapacity
) -> list[Victim] | None:
    """Return the first victims that suffice by the number of their GPUs, without those that are not needed.

    None if all together do not suffice. Whether the preemptor can then be placed is not checked here.
    """
    if not _countable(request):
        return list(victims)
    lacking = request.resources.gpus - len(cluster.capacities[node].free)
    chosen: list[Victim] = []
    for victim in victims:
        if lacking <= 0:
            break
        if victim.job.resources.gpus and not victim.job.resources.gpu_share:
            chosen.append(victim)
            lacking -= victim.job.resources.gpus
    if lacking > 0:
        # How many of the jobs that share GPUs have to leave cannot be counted.
        return chosen if any(victim.job.resources.gpu_share for victim in victims) else None
    for victim in chosen[:] if lacking else ():
        if lacking + victim.job.resources.gpus <= 0:
            chosen.remove(victim)
            lacking += victim.job.resources.gpus
    return chosen


def _fewest(
    request: PlacementRequest, node: str, victims: Iterable[Victim], cluster: ClusterCapacity
) -> list[Victim] | None:
    """Return the first victims that suffice, without those that are not needed; None if all together do not."""
    chosen: list[Victim] = []
    freed = cluster.copy()
    for victim in victims:
        if freed.fits(request, node):
            break
        freed.release(victim.job)
        chosen.append(victim)
    if not freed.fits(request, node):
        return None
    for victim in chosen[:]:
        freed.take(victim.job.job, victim.job.resources, victim.job.placements)
        if freed.fits(request, node):
            chosen.remove(victim)
        else:
            freed.release(victim.job)
    return chosen


def _enough_held(request: PlacementRequest, node: str, victims: Iterable[Victim], cluster: ClusterCapacity) -> bool:
    """Return whether the node's free GPUs and those of the victims could suffice: a cheap filter."""
    if request.resources.gpu_share:
        return True
    slots = len(cluster.capacities[node].free)
    for victim in victims:
        slots += victim.job.resources.gpus
    return slots >= request.resources.gpus


def on_several(
    request: PlacementRequest, by_node: dict[str, list[Victim]], cluster: ClusterCapacity
) -> PreemptionPlan | None:
    """Return the cheapest plan that frees enough nodes at once; None if there is none.

    The cheapest nodes are taken first; a victim on one of them frees its other nodes too.
    """
    feasible = [
        node for node in sorted(cluster.capacities) if _enough_held(request, node, by_node.get(node, ()), cluster)
    ]
    if len(feasible) < request.nodes:
        return None
    needed = {
        node: chosen
        for node in feasible
        if (chosen := _fewest(request, node, by_node.get(node, ()), cluster)) is not None
    }
    plans = []
    for same in sorts([cluster.capacities[node].info for node in needed], request.resources):
        nodes = sorted((info.name for info in same), key=lambda node: (_cost(needed[node]), node))[: request.nodes]
        unique = {victim.job.job: victim for node in nodes for victim in needed[node]}
        freed = cluster.without(victim.job for victim in unique.values())
        placements = [freed.placement(request, node) for node in nodes]
        whole = tuple(placement for placement in placements if placement is not None)
        if len(whole) == request.nodes:
            plans.append(PreemptionPlan(victims=tuple(unique.values()), placements=whole))
    return min(plans, key=lambda plan: _cost(plan.victims), default=None)
