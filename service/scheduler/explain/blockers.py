"""Obstacles that keep one waiting job from starting, as plain data; `reasons` puts them into words."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from service.scheduler.explain import passes
from service.scheduler.explain.fit import enough, lacks
from service.scheduler.explain.lack import Lack, lack_of
from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.decisions import CancelPreemption, Preempt, Start
from service.scheduler.model.jobs import IneligibleReason, Running
from service.scheduler.model.nodes import ClosedReason, ResourceRequest
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest, choose
from service.scheduler.policy.quotas import Reached
from service.scheduler.policy.requests import placement_request
from torchyard.ids import JobId
from torchyard.spec.policy import Policy


class Obstacle(StrEnum):
    """Kind of obstacle that keeps a job from starting."""

    #: The queue is paused: `state.paused`.
    QUEUE_PAUSED = "queue-paused"
    #: `ineligible` says why.
    INELIGIBLE = "ineligible"
    #: No node has registered.
    NO_NODES = "no-nodes"
    #: `lack` says why the node, or all of them, could never hold it.
    NEVER_FITS = "never-fits"
    #: `reached` says which quota.
    QUOTA = "quota"
    #: It starts with the next decision.
    STARTING = "starting"
    #: `jobs` are being preempted for it.
    PREEMPTING = "preempting"
    #: The node takes no jobs: `closed`.
    CLOSED = "closed"
    #: The node has CPU slots, and the job needs GPUs: `lack`.
    NO_GPUS = "no-gpus"
    #: The node's worker is too old for it: `unknown` is what it does not know.
    OUTDATED = "outdated"
    #: The node runs no jobs of its owner, who has no UNIX account there.
    ACCOUNT = "account"
    #: Slots of the node that it would need cannot be used.
    UNUSABLE = "unusable"
    #: Of the `needed` GPUs (or memory of shared ones) `free` are free on the node; `jobs` hold the rest.
    GPUS = "gpus"
    CPUS = "cpus"
    MEMORY = "memory"
    #: The node's free devices are held for `jobs`, which come first.
    KEPT = "kept"
    #: The node's free devices are reserved: `reservation`.
    RESERVED = "reserved"
    #: It would fit on the node, but `jobs` come first and get the free devices.
    BEHIND = "behind"
    #: Of the `needed` nodes only `free` have the capacity at once.
    NODES = "nodes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocker:
    """One obstacle that keeps a job from starting; which fields are set depends on `obstacle`."""

    obstacle: Obstacle
    node: str | None = None
    ineligible: IneligibleReason | None = None
    reached: Reached | None = None
    closed: ClosedReason | None = None
    lack: Lack | None = None
    unknown: str | None = None
    reservation: str | None = None
    needed: int = 0
    free: int = 0
    jobs: tuple[JobId, ...] = ()
    #: When what is kept is expected to be taken; infinite if nothing tells.
    until_us: float = math.inf


def blockers(state: SchedulerState, job: JobId, now_us: int, policy: Policy) -> list[Blocker]:
    """Return the obstacles that keep a waiting job from starting now (`DecisionReview.blockers`)."""
    return DecisionReview(state, now_us, policy).blockers(job)


class DecisionReview:
    """One scheduling pass, and why it did not start the other jobs; valid as long as the state does not change."""

    def __init__(self, state: SchedulerState, now_us: int, policy: Policy) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        self.done = SchedulingPass(state, now_us, policy)
        self.decisions = decisions = self.done.run()
        #: Jobs that start now.
        self.starting = {decision.job for decision in decisions if isinstance(decision, Start)}
        self._victims = {job: set(victims) for job, victims in state.victims.items()}
        for decision in decisions:
            if isinstance(decision, Preempt):
                self._victims.setdefault(decision.for_job, set()).add(decision.job)
            elif isinstance(decision, CancelPreemption):
                self._victims.pop(decision.for_job, None)

    def moves(self, job: JobId) -> bool:
        """Return whether the job starts now, or has others preempted for it."""
        return not self._state.paused and (job in self.starting or job in self._victims)

    def reached(self, job: JobId) -> list[Reached]:
        """Return the quotas that keep a waiting job from starting."""
        return passes.reached(self.done, self._state, job)

    def blockers(self, job: JobId) -> list[Blocker]:
        """Return the obstacles that keep a waiting job from starting now; never empty.

        Those of the job itself come first, then those of the nodes by name. While the queue is paused, that comes
        before them. KeyError if it does not wait.
        """
        found = self._own(job)
        if not self._state.paused:
            return found
        moves = (Obstacle.STARTING, Obstacle.PREEMPTING)
        return [Blocker(obstacle=Obstacle.QUEUE_PAUSED), *(each for each in found if each.obstacle not in moves)]

    def _own(self, job: JobId) -> list[Blocker]:
        state, waiting = self._state, self._state.waiting[job]
        if waiting.ineligible is not None:
            return [Blocker(obstacle=Obstacle.INELIGIBLE, ineligible=waiting.ineligible)]
        if not state.nodes:
            return [Blocker(obstacle=Obstacle.NO_NODES)]
        if never := lacks(waiting.resources, list(state.nodes.values()), waiting.nodes):
            return _excluding(state, waiting.resources) or [
                Blocker(obstacle=Obstacle.NEVER_FITS, lack=lack) for lack in never
            ]
        if job in self.starting:
            return [Blocker(obstacle=Obstacle.STARTING)]
        if victims := self._victims.get(job):
            return [Blocker(obstacle=Obstacle.PREEMPTING, jobs=tuple(sorted(victims)))]
        found = [Blocker(obstacle=Obstacle.QUOTA, reached=one) for one in self.reached(job)]
        return found or _of_nodes(state, placement_request(waiting, self._now_us, self._policy), self.done)


def _excluding(state: SchedulerState, resources: ResourceRequest) -> list[Blocker]:
    """Return a blocker for each node that could hold the job if its owner had a UNIX account there."""
    welcome = replace(resources, excluded_nodes=frozenset())
    nodes = sorted(resources.excluded_nodes & state.nodes.keys())
    able = (node for node in nodes if state.nodes[node].could_hold(welcome))
    return [Blocker(obstacle=Obstacle.ACCOUNT, node=node) for node in able]


def _of_nodes(state: SchedulerState, request: PlacementRequest, done: SchedulingPass) -> list[Blocker]:
    before = ClusterCapacity(
        capacities={node: capacity for node, capacity in state.capacities().items() if capacity.info.closed is None}
    )
    welcome = state.nodes.keys() - request.resources.excluded_nodes
    found = [_of_node(state, request, node, before, done) for node in sorted(welcome)]
    able = [node for node in before.capacities if before.placement(request, node) is not None]
    if request.nodes > 1 and not enough([state.nodes[node] for node in able], request.resources, request.nodes):
        found.append(Blocker(obstacle=Obstacle.NODES, needed=request.nodes, free=len(able)))
    known = [*(blocker for blocker in found if blocker is not None), *_excluding(state, request.resources)]
    return known or [Blocker(obstacle=Obstacle.BEHIND)]


def _of_node(
    state: SchedulerState, request: PlacementRequest, node: str, before: ClusterCapacity, done: SchedulingPass
) -> Blocker | None:
    """Return the obstacle on a node.

    None if the node could never hold a part of the job, except for want of GPUs, which is an obstacle.
    """
    info = state.nodes[node]
    if info.lacks_gpus(request.resources):
        return Blocker(obstacle=Obstacle.NO_GPUS, node=node, lack=lack_of(info, request.resources))
    if not info.could_hold(request.resources):
        return None
    if info.closed is not None:
        return Blocker(obstacle=Obstacle.CLOSED, node=node, closed=info.closed)
    if (unknown := info.outdated(request.resources)) is not None:
        return Blocker(obstacle=Obstacle.OUTDATED, node=node, unknown=unknown)
    if not info.usable.could_hold(request.resources):
        return Blocker(obstacle=Obstacle.UNUSABLE, node=node, lack=lack_of(info.usable, request.resources))
    short = _short(state, request, before.capacities[node])
    return short or _of_others(state, request, node, done)


def _short(state: SchedulerState, request: PlacementRequest, capacity: NodeCapacity) -> Blocker | None:
    """Return the resource of the node that the job lacks because running jobs hold it; None if it lacks none."""
    resources, node = request.resources, capacity.info.name
    running = [state.running[job] for job in capacity.jobs]
    if choose(capacity, resources) is None:
        free = _free(capacity, request)
        jobs = _names(job for job in running if any(p.node == node and p.uuids for p in job.placements))
        return Blocker(obstacle=Obstacle.GPUS, node=node, needed=resources.gpus, free=free, jobs=jobs)
    if resources.cpus > max(capacity.cpus, 0):
        jobs = _names(job for job in running if job.resources.cpus)
        return Blocker(obstacle=Obstacle.CPUS, node=node, needed=resources.cpus, free=max(capacity.cpus, 0), jobs=jobs)
    if resources.memory > max(capacity.memory, 0):
        jobs = _names(job for job in running if job.resources.memory)
        return Blocker(
            obstacle=Obstacle.MEMORY, node=node, needed=resources.memory, free=max(capacity.memory, 0), jobs=jobs
        )
    return None


def _of_others(state: SchedulerState, request: PlacementRequest, node: str, done: SchedulingPass) -> Blocker:
    """Return the obstacle on a node that has the free capacity: the job or reservation that gets it instead."""
    cluster = done.cluster
    reservations = passes.against(done, request, node)
    if reservations:
        return Blocker(obstacle=Obstacle.RESERVED, node=node, reservation=reservations[0])
    hold = cluster.holds.get(node)
    if hold is not None and not hold.lets(request):
        return Blocker(obstacle=Obstacle.KEPT, node=node, jobs=(hold.job,), until_us=hold.until_us)
    return Blocker(obstacle=Obstacle.BEHIND, node=node, jobs=passes.given(done, state, node))


def _free(capacity: NodeCapacity, request: PlacementRequest) -> int:
    resources = request.resources
    if resources.gpu_share:
        return sum(
            slot.suits(resources) and capacity.spare(slot) >= resources.gpu_share for slot in capacity.usable.values()
        )
    return sum(slot.suits(resources) for slot in capacity.free.values())


def _names(running: Iterable[Running]) -> tuple[JobId, ...]:
    return tuple(job.job for job in running)
