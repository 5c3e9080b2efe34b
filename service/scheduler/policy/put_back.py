"""Jobs that are put back: on trial, on devices held for a blocked job, and not gone by the time when that can start.

What a trial is, and when a job on trial is preempted instead, is told in `trials`.
"""

import math

from service.scheduler.model.decisions import PutBack
from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.order import Ranking
from service.scheduler.policy.placement import ClusterCapacity, Hold, HoldKind, PlacementRequest
from service.scheduler.policy.preemption import AHEAD
from service.scheduler.policy.requests import placement_request
from service.scheduler.policy.trials import tries
from torchyard.ids import JobId
from torchyard.spec.policy import Policy


class JobsOnTrial:
    """The running jobs that may still be put back, and cannot be stopped otherwise."""

    def __init__(self, state: SchedulerState, now_us: int, policy: Policy, ranking: Ranking) -> None:
        self._state, self._now_us, self._policy, self._ranking = state, now_us, policy, ranking
        self._jobs: list[Running] = []
        if tries(policy):
            until_us = state.table.columns[Column.UNTIL]
            rows = ((until_us >= now_us) & (until_us < math.inf)).nonzero()[0].tolist()
            jobs = (state.running[state.table.jobs[row]] for row in rows)
            self._jobs = [job for job in jobs if job.restartable and job.preempted_for is None and not job.stops]

    def behind(self, blocked: int, kind: HoldKind) -> frozenset[JobId]:
        """Return the jobs that are put back for the job of this row if they are in its way, or may be later."""
        return frozenset(job.job for job in self._jobs if self._is_behind(self._row(job), blocked, kind))

    def judged(self) -> list[Running]:
        """Return the jobs whose trial has told how long they take, and that have run for `min_run`."""
        ready_us = self._now_us - self._policy.min_run * 1_000_000
        return [job for job in self._jobs if job.since_us <= ready_us and self._ranking.left[self._row(job)] > 0]

    def put_back(self, cluster: ClusterCapacity) -> list[PutBack]:
        """Return those that are put back, given what is held at the end of a decision."""
        jobs = sorted(self.judged(), key=lambda job: -self._ranking.key[self._row(job)])  # from the end of the order
        held_for = [(job, self._held_for(job, cluster)) for job in jobs]
        return [
            PutBack(job=job.job, for_job=blocked)
            for blocked in dict.fromkeys(each for _, each in held_for if each is not None)
            for job in self._needed(blocked, [job for job, each in held_for if each == blocked], cluster)
        ]

    def _held_for(self, job: Running, cluster: ClusterCapacity) -> JobId | None:
        """Return the blocked job for which the devices of a job on trial are held, if it is not gone in time."""
        limit_us = math.inf if job.ends_us is None else job.ends_us
        ends_us = end_us(job, "p90_us", self._now_us)
        request = PlacementRequest(
            job=job.job,
            resources=job.resources,
            likely_end_us=end_us(job, "p50_us", self._now_us),
            ends_us=ends_us,
            latest_end_us=limit_us,
            late_end_us=min(limit_us, 2 * ends_us - self._now_us),
        )
        for placement in job.placements:
            hold = cluster.holds.get(placement.node)
            if (
                hold is not None
                and hold.until_us < math.inf
                and not hold.lets(request)
                and _takes_of(hold, job, placement, cluster)
                and self._is_behind(self._row(job), self._state.table.rows[hold.job], hold.kind)
            ):
                return hold.job
        return None

    def _needed(self, blocked: JobId, jobs: list[Running], cluster: ClusterCapacity) -> list[Running]:
        """Return those that have to leave for a blocked job: none if its devices were lent to others, too."""
        if all(hold.until_us > self._now_us for hold in cluster.holds.values() if hold.job == blocked):
            return jobs  # it starts when others have left, too
        request = placement_request(self._state.waiting[blocked], self._now_us, self._policy)
        freed = cluster.copy()
        for number, job in enumerate(jobs, 1):
            freed.release(job)
            if freed.find(request):
                return jobs[:number]
        return []

    def _is_behind(self, row: int, blocked: int, kind: HoldKind) -> bool:
        ranking = self._ranking
        if ranking.left[row] <= 0:
            return True  # its length is not known yet
        if ranking.overdue[row]:
            return False
        if kind is not HoldKind.FIRST_BLOCKED:
            return True
        lower = ranking.level[blocked] < ranking.level[row]
        ahead = lower or AHEAD * ranking.hold_score[blocked] < ranking.score[row]
        return bool(ahead and ranking.hold_key[blocked] < ranking.key[row])

    def _row(self, job: Running) -> int:
        return self._state.table.rows[job.job]


def _takes_of(hold: Hold, job: Running, placement: Placement, cluster: ClusterCapacity) -> bool:
    """Return whether a job has devices that are held, or cores or memory of which the node has too little free."""
    node, resources = cluster.capacities[placement.node], job.resources
    lacking = (resources.cpus and node.cpus < hold.cpus) or (resources.memory and node.memory < hold.memory)
    return bool(lacking or not hold.uuids.isdisjoint(placement.uuids))
