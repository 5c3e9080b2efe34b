"""Reasons for which devices are idle, as plain data; `idle_words` puts them into words. Pure.

The answer follows from one scheduling pass (`blockers.DecisionReview`): what it gives out, what it holds for a blocked
job, what is reserved; and for the rest, from the first job of the queue that could use the node and does not start
there.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.scheduler.explain import passes
from service.scheduler.explain.availability import available_at
from service.scheduler.explain.blockers import Blocker, DecisionReview, Obstacle
from service.scheduler.model.decisions import Start
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.maintenance import takes_jobs_us
from service.scheduler.policy.trials import on_trial
from torchyard.api import IdleReason
from torchyard.ids import JobId

#: Jobs of the queue, unlike each other, that are looked at for one node.
MAX_LOOKS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeIdleDevices:
    """Devices of one node that are idle for the same reason."""

    node: str
    uuids: tuple[str, ...]
    reason: IdleReason
    #: The job for which they are idle.
    job: JobId | None = None
    #: When that is expected to be over; infinite if nothing tells.
    until_us: float = math.inf
    #: Jobs in its way on the node that cannot be stopped for it.
    unstoppable: tuple[JobId, ...] = ()
    reservation: str | None = None


def find(state: SchedulerState, review: DecisionReview, queue: Sequence[JobId], now_us: int) -> list[NodeIdleDevices]:
    """Return all devices that no job holds, by node; those that must not be used are left out.

    `queue` is the order of the waiting jobs at that moment (`policy.order`).
    """
    search = _Search(state, review, queue, now_us)
    return [each for node in sorted(state.nodes) for each in search.of_node(node)]


class _Search:
    """Search for the reasons on all nodes at one moment."""

    def __init__(self, state: SchedulerState, review: DecisionReview, queue: Sequence[JobId], now_us: int) -> None:
        self._state, self._review, self._now_us = state, review, now_us
        self._given = {
            (placement.node, uuid): one.job
            for one in review.decisions
            if isinstance(one, Start)
            for placement in one.placements
            for uuid in placement.uuids
        }
        #: The first waiting job of each kind, in the order of the queue.
        kinds = {state.table.class_id[state.table.rows[job]]: job for job in reversed(queue)}
        self._first = [job for job in queue if kinds[state.table.class_id[state.table.rows[job]]] == job][:MAX_LOOKS]
        self._known: dict[JobId, list[Blocker]] = {}

    def of_node(self, node: str) -> Iterable[NodeIdleDevices]:
        """Yield the node's idle devices, those with the same reason together."""
        uuids = tuple(self._state.capacities()[node].free)
        if not uuids:
            return
        if self._state.paused:
            yield NodeIdleDevices(node=node, uuids=uuids, reason=IdleReason.QUEUE_PAUSED)
        elif self._state.nodes[node].closed is not None:
            yield self._closed(node, uuids)
        else:
            yield from self._of_open(node, uuids)

    def _closed(self, node: str, uuids: tuple[str, ...]) -> NodeIdleDevices:
        info = self._state.nodes[node]
        drains = info.closed is ClosedReason.DRAINING
        until_us = takes_jobs_us(self._state, info) if drains else math.inf
        return NodeIdleDevices(node=node, uuids=uuids, reason=IdleReason.CLOSED, until_us=until_us)

    def _of_open(self, node: str, uuids: tuple[str, ...]) -> Iterable[NodeIdleDevices]:
        cluster = self._review.done.cluster
        taken = [uuid for uuid in uuids if uuid not in cluster.capacities[node].free]
        yield from self._taken(node, taken)
        hold = cluster.holds.get(node)
        held = tuple(uuid for uuid in uuids if uuid not in taken and hold is not None and uuid in hold.uuids)
        if hold is not None and held:
            yield self._kept(node, held, hold.job, hold.until_us)
        left = [uuid for uuid in uuids if uuid not in taken and uuid not in held]
        for one in passes.reserved_now(self._review.done, node, self._now_us):
            some = tuple(uuid for uuid in left if uuid in one.devices[node])
            left = [uuid for uuid in left if uuid not in some]
            if some:
                name, until_us = one.reservation.id, one.reservation.ends_us
                yield NodeIdleDevices(
                    node=node, uuids=some, reason=IdleReason.RESERVED, until_us=until_us, reservation=name
                )
        if left:
            yield self._left_over(node, tuple(left))

    def _taken(self, node: str, uuids: Sequence[str]) -> Iterable[NodeIdleDevices]:
        """Yield the devices that the pass gives out: to a job that starts, or that others are stopped for."""
        waits = next(
            (job for job in passes.given(self._review.done, self._state, node) if job not in self._review.starting),
            None,
        )
        jobs = {uuid: self._given.get((node, uuid), waits) for uuid in uuids}
        for job in dict.fromkeys(jobs.values()):
            some = tuple(uuid for uuid, its in jobs.items() if its == job)
            reason = IdleReason.STARTING if job in self._review.starting else IdleReason.PREEMPTING
            yield NodeIdleDevices(node=node, uuids=some, reason=reason, job=job)

    def _kept(self, node: str, uuids: tuple[str, ...], job: JobId, until_us: float) -> NodeIdleDevices:
        here = self._state.capacities()[node].jobs
        return NodeIdleDevices(
            node=node,
            uuids=uuids,
            reason=IdleReason.KEPT,
            job=job,
            until_us=until_us,
            unstoppable=self._unstoppable(here),
        )

    def _left_over(self, node: str, uuids: tuple[str, ...]) -> NodeIdleDevices:
        """Return why the rest is idle, by the first job of the queue that could use the node."""
        met = [IdleReason.NOBODY]
        for job in self._first:
            waiting = self._state.waiting[job]
            if self._review.moves(job):
                continue
            reason = self._excluded(waiting, node)
            if reason is not None:
                met.append(reason)
            else:
                return self._against(node, uuids, waiting)
        strongest = min(met, key=_RANK.index)
        return NodeIdleDevices(node=node, uuids=uuids, reason=strongest)

    def _excluded(self, waiting: Waiting, node: str) -> IdleReason | None:
        """Return why the job could not use the node at all now; None if it could."""
        if waiting.ineligible is not None:
            return IdleReason.INELIGIBLE
        if not waiting.resources.gpus or not self._state.nodes[node].usable.could_hold(waiting.resources):
            return IdleReason.UNSUITABLE
        if self._review.reached(waiting.job):
            return IdleReason.QUOTA
        met = self._met(waiting, node)
        return None if met and all(each.obstacle not in _OTHERS for each in met) else IdleReason.UNSUITABLE

    def _against(self, node: str, uuids: tuple[str, ...], waiting: Waiting) -> NodeIdleDevices:
        met = self._met(waiting, node)
        found = next((each for each in met if each.obstacle is not Obstacle.BEHIND), met[0])
        if found.obstacle is Obstacle.BEHIND and not found.jobs and waiting.nodes == 1:
            return NodeIdleDevices(node=node, uuids=uuids, reason=IdleReason.NEXT, job=waiting.job)
        if found.obstacle is Obstacle.KEPT:
            return self._kept(node, uuids, found.jobs[0], found.until_us)
        if found.obstacle is Obstacle.RESERVED:
            ends = {each.id: each.ends_us for each in self._state.reservations}
            return NodeIdleDevices(
                node=node,
                uuids=uuids,
                reason=IdleReason.RESERVED,
                until_us=ends.get(found.reservation or "", math.inf),
                reservation=found.reservation,
            )
        behind = found.obstacle is Obstacle.BEHIND  # the rest of what it needs is given to others in this pass
        return NodeIdleDevices(
            node=node,
            uuids=uuids,
            reason=IdleReason.TOO_FEW,
            job=waiting.job,
            until_us=math.inf if behind else available_at(self._state, waiting.resources, node, self._now_us),
            unstoppable=() if behind else self._unstoppable(found.jobs),
        )

    def _met(self, waiting: Waiting, node: str) -> list[Blocker]:
        """Return what keeps the job from the node."""
        if waiting.job not in self._known:
            self._known[waiting.job] = self._review.blockers(waiting.job)
        return [each for each in self._known[waiting.job] if each.node in (node, None)]

    def _unstoppable(self, jobs: Iterable[JobId]) -> tuple[JobId, ...]:
        running = (self._state.running[job] for job in jobs)
        return tuple(each.job for each in running if each.resources.gpus and not self._may_stop(each))

    def _may_stop(self, job: Running) -> bool:
        return job.preemptible or job.stops or on_trial(job, self._now_us)


#: Obstacles that no free device removes.
_OTHERS = frozenset({Obstacle.NEVER_FITS, Obstacle.ACCOUNT, Obstacle.OUTDATED, Obstacle.UNUSABLE, Obstacle.NO_GPUS})
#: Which of several reasons is told: the one that is nearest to an end.
_RANK = (IdleReason.QUOTA, IdleReason.INELIGIBLE, IdleReason.UNSUITABLE, IdleReason.NOBODY)
