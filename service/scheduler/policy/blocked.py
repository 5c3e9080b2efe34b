"""Jobs for which nodes are held in one decision: the first blocked job, and the oldest overdue one.

The first blocked job is found during the pass: the first that was tried in vain, or that became infeasible before it
was tried. Nodes are held only once a later job comes that could take them; most passes see none.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.scheduler.model.columns import Bools, Floats, Ints
from service.scheduler.model.decisions import PutBack
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.backfill import Need, hold_nodes, oldest_since
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.feasibility import FeasibilityFilter
from service.scheduler.policy.order import PATIENCE, PERIOD_US, Ranking
from service.scheduler.policy.placement import ClusterCapacity, Hold, PlacementRequest
from service.scheduler.policy.preemption import AHEAD
from service.scheduler.policy.quotas import RemainingQuotas
from service.scheduler.policy.requests import placement_request, preempts
from service.scheduler.policy.trials import tries
from torchyard.ids import JobId
from torchyard.spec.policy import Policy


class DecisionContext(NamedTuple):
    """Ranking, feasibility filter, remaining quotas and free capacity during one decision."""

    ranking: Ranking
    feasibility: FeasibilityFilter
    quotas: RemainingQuotas
    cluster: ClusterCapacity


class _Wanting(NamedTuple):
    """A job for which nodes are to be held."""

    row: int
    job: Waiting
    #: As in `Need`.
    by_time_limits: bool
    open_to_preemptible: bool


class Blocked:
    """The jobs that later ones must not delay: the first blocked job, and the oldest overdue one."""

    def __init__(
        self, state: SchedulerState, now_us: int, policy: Policy, context: DecisionContext, reserved_us: Sequence[int]
    ) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        self._ranks, self._feasibility, self._quotas, self._cluster = context
        #: When reservations begin.
        self._reserved_us = reserved_us
        #: The first blocked job and the oldest overdue one, as long as nothing is held for them yet.
        self._wanting: list[_Wanting] = []
        self._first: int | None = None
        self._trials = self._on_trial() if tries(policy) else []
        #: Infeasible rows, as far as one of them may be the first blocked job, and the first of them.
        self._lost_rows: Ints = np.zeros(0, dtype=np.intp)
        self._infeasible: int | None = None

    def begin(self, ahead: Ints, feasible: Bools) -> None:
        """Set the rows that wait, and which of them are feasible."""
        if self._reserved_us:
            self._new_deadline()
        self._find_oldest(ahead)
        self._lose(ahead[~feasible])

    def feasible(self, rows: Ints) -> Bools:
        """Return which of the rows are still feasible."""
        found = self._feasibility.of(rows)
        if self._first is None:
            self._lose(rows[~found])
        return found

    def lose_row(self, row: int) -> None:
        """Note that the row has become infeasible on the way."""
        if self._first is None:
            self._lose(np.array([row]))

    def may_overtake(self, row: int) -> bool:
        """Return whether the row's job may be tried: no job before it is blocked, or the policy backfills."""
        if self._first is not None:
            return self._policy.backfill
        infeasible, ranks, number = self._first_infeasible(), self._ranks, self._state.table.columns[Column.NUMBER]
        if infeasible is None or (ranks.hold_key[infeasible], number[infeasible]) > (ranks.key[row], number[row]):
            return True
        self._block(infeasible)
        return self._policy.backfill

    def protect_from(self, request: PlacementRequest) -> None:
        """Hold nodes for the blocked jobs if this one, which comes after them, could take these nodes from them."""
        if all(
            one.job.job == request.job or (request.preemptible and one.open_to_preemptible) for one in self._wanting
        ):
            return
        self._hold()

    def wait(self, job: Waiting, row: int, class_id: int) -> bool:
        """Note that the row's job was tried in vain; return False if no job after it may start."""
        if self._ranks.turn[row]:
            if not hold_nodes(
                self._cluster,
                self._state,
                self._need(_Wanting(row, job, by_time_limits=True, open_to_preemptible=False)),
            ):
                self._feasibility.nothing_to_keep(class_id)
            self._new_deadline()
        elif self._first is None and self._ranks.hold_key[row] > self._ranks.key[row]:
            self._lose(np.array([row]))
            return True
        elif self._first is None:
            self._block(row)
        return self._policy.backfill

    def put_back(self) -> list[PutBack]:
        """Return the jobs on trial that are put back because their devices are held; call it after all else."""
        ready_us = self._now_us - self._policy.min_run * 1_000_000
        trials = [job for job in self._trials if job.since_us <= ready_us and self._ranks.left[self._row(job)] > 0]
        if not trials:
            return []
        if self._first is None and (infeasible := self._first_infeasible()) is not None:
            self._block(infeasible)
        self._hold()
        trials.sort(key=lambda job: -self._ranks.key[self._row(job)])  # from the end of the order
        ways = [(job, self._in_the_way(job)) for job in trials]
        return [
            PutBack(job=job.job, for_job=blocked)
            for blocked in dict.fromkeys(way for _, way in ways if way is not None)
            for job in self._needed(blocked, [job for job, way in ways if way == blocked])
        ]

    def _needed(self, blocked: JobId, jobs: list[Running]) -> list[Running]:
        """Return those that have to leave for a blocked job: none if its devices were lent to others, too."""
        if all(hold.until_us > self._now_us for hold in self._cluster.holds.values() if hold.job == blocked):
            return jobs  # it starts when others have left, too
        request = placement_request(self._state.waiting[blocked], self._now_us, self._policy)
        freed = self._cluster.copy()
        for number, job in enumerate(jobs, 1):
            freed.release(job)
            if freed.find(request):
                return jobs[:number]
        return []

    def _in_the_way(self, job: Running) -> JobId | None:
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
        holds = ((placement, self._cluster.holds.get(placement.node)) for placement in job.placements)
        return next(
            (
                hold.job
                for placement, hold in holds
                if hold is not None
                and hold.until_us < math.inf
                and not hold.lets(request)
                and self._has_of(hold, job, placement)
                and self._behind(self._row(job), self._state.table.rows[hold.job], oldest=hold.by_time_limits)
            ),
            None,
        )

    def _has_of(self, hold: Hold, job: Running, placement: Placement) -> bool:
        """Return whether a job has devices that are held, or cores or memory of which the node has too little free."""
        node, resources = self._cluster.capacities[placement.node], job.resources
        lacking = (resources.cpus and node.cpus < hold.cpus) or (resources.memory and node.memory < hold.memory)
        return bool(lacking or not hold.uuids.isdisjoint(placement.uuids))

    def _behind(self, row: int, blocked: int, *, oldest: bool) -> bool:
        """Return whether a job on trial is put back for a blocked one, as far as its length is known yet: for the
        `oldest` overdue one, unless it is overdue itself.
        """
        ranks = self._ranks
        if oldest or ranks.left[row] <= 0 or ranks.overdue[row]:
            return bool(ranks.left[row] <= 0 or not ranks.overdue[row])
        lower = ranks.level[blocked] < ranks.level[row]
        ahead = lower or AHEAD * ranks.hold_score[blocked] < ranks.score[row]
        return bool(ahead and ranks.hold_key[blocked] < ranks.key[row])

    def _row(self, job: Running) -> int:
        return self._state.table.rows[job.job]

    def _block(self, row: int) -> None:
        self._first = row
        self._wanting.append(_Wanting(row, self._job(row), by_time_limits=False, open_to_preemptible=True))

    def _hold(self) -> None:
        for one in self._wanting:
            hold_nodes(self._cluster, self._state, self._need(one))
            self._feasibility.hold_owners[one.row] = True
        self._wanting = []
        self._new_deadline()

    def _find_oldest(self, ahead: Ints) -> None:
        late = ahead[self._ranks.overdue[ahead]]
        oldest = self._first_of(late, -self._state.table.columns[Column.AGE][late])
        if oldest is None:
            return
        self._wanting.append(
            _Wanting(oldest, self._job(oldest), by_time_limits=True, open_to_preemptible=not self._ranks.turn[oldest])
        )

    def _lose(self, rows: Ints) -> None:
        if self._quotas.bounded:
            rows = self._lost_rows = np.append(self._lost_rows, rows)
        elif self._infeasible is not None:
            rows = np.append(rows, self._infeasible)
        self._infeasible = self._first_of(rows, self._ranks.hold_key[rows])

    def _first_infeasible(self) -> int | None:
        """Return the first infeasible row that is still within its quotas: jobs started since may have used them up."""
        classes = self._feasibility.class_id
        while self._infeasible is not None and self._quotas.forbid(class_id := int(classes[self._infeasible])):
            self._feasibility.quota_reached(class_id)
            self._infeasible = self._first_of(self._lost_rows, self._ranks.hold_key[self._lost_rows])
        return self._infeasible

    def _first_of(self, rows: Ints, keys: Floats) -> int | None:
        """Return the first, by these keys and then by number, of the rows within their quotas; None without any."""
        if self._quotas.bounded:
            free = self._feasibility.open[self._feasibility.class_id[rows]]
            rows, keys = rows[free], keys[free]
        if not len(rows):
            return None
        rows = rows[keys == np.minimum.reduce(keys)]
        return int(rows[np.argmin(self._state.table.columns[Column.NUMBER][rows])])

    def _new_deadline(self) -> None:
        holds = self._cluster.holds.values()
        untils = [
            until for one in holds for until in (one.until_us, one.expected_end_us, one.turn_us) if until < math.inf
        ]
        self._feasibility.deadline_us = max([*untils, *self._reserved_us], default=0.0)

    def _need(self, one: _Wanting) -> Need:
        row, job, by_time_limits, open_to_preemptible = one
        request, may_preempt = placement_request(job, self._now_us, self._policy), preempts(self._policy)
        need = Need(
            request=request,
            now_us=self._now_us,
            by_time_limits=by_time_limits,
            may_preempt=may_preempt,
            open_to_preemptible=open_to_preemptible,
            tried=frozenset(
                each.job for each in self._trials if self._behind(self._row(each), row, oldest=by_time_limits)
            ),
        )
        if not (by_time_limits and open_to_preemptible):
            return need
        # The oldest overdue job while it is not its turn: since when other jobs have to stay out of its way.
        longest_us = self._policy.longest_wait * 1e6
        waited_us = self._now_us - job.eligible_us - job.ran_us
        since_us = oldest_since(job, self._state, longest_us, may_preempt=may_preempt)
        turn_us = (self._now_us // PERIOD_US + 1) * PERIOD_US
        return replace(need, since_us=since_us, patience_us=waited_us / PATIENCE, turn_us=turn_us)

    def _on_trial(self) -> list[Running]:
        """Return the jobs that may still be put back, and cannot be stopped otherwise."""
        until_us = self._state.table.columns[Column.UNTIL]
        rows = ((until_us >= self._now_us) & (until_us < math.inf)).nonzero()[0].tolist()
        jobs = (self._state.running[self._state.table.jobs[row]] for row in rows)
        return [job for job in jobs if job.restartable and job.preempted_for is None and not job.stops]

    def _job(self, row: int) -> Waiting:
        return self._state.waiting[self._state.table.jobs[row]]
