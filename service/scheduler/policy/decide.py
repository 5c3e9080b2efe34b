"""Decide which jobs start where, and which are preempted: a pure, deterministic function over plain data.

`decide` makes one scheduling pass over the whole state. The live scheduler, the simulator, the explanations and the
tests run this code; all policies are settings of it (`torchyard.spec.policy`).

1. **Reservations** that are about to start preempt the jobs in their way that can be preempted (`reserved`).
2. **Promises**: a job that others were preempted for is placed first, and the devices it waits for are held for it. If
   it would not start any more (a quota, a closed node), the preemption of those that still run is cancelled.
3. The others follow in their **order** (`order`): priority class, raised by waiting; within it by remaining time, age,
   and the usage of user and project (`shares`). A job over a **quota** (`quotas`) is skipped and blocks no other.
4. A job that fits on free devices **starts** there (`placement`). If it does not, it **preempts** jobs that come after
   it and may be preempted for it (`preemption`), provided that it then really starts.
5. The first job that can do neither is **blocked**: nodes are held for it, and jobs behind it may only take devices
   where they do not delay it (`backfill`); without `backfill` no job behind it starts at all.
6. Jobs whose **trial** is over, and that are in the way of a blocked job, are put back (`put_back`).

**No job starves.** A job that has waited for `longest_wait` is overdue. For the oldest overdue job within its quotas,
the devices that it needs are kept from jobs that cannot be preempted, and in its turns it preempts those that can be
(`order`, `backfill`). So if no job that cannot be preempted runs for longer than L, or is expected to, its nodes are
kept once it has waited for `longest_wait` and for 30 L, and from then on the k-th oldest has started within
k * (2 L + 12 h + `min_run` + `checkpoint_timeout`), and 12 h later for each turn more than one that older jobs need
which are preempted in between, unless something other than jobs is in its way: its quota, a reservation, a closed node,
a checkpoint that fails. From then on it runs for at least 36 minutes of every 12 hours, less the time that jobs that
cannot be preempted hold its devices by then, or to its end if it cannot be preempted itself.

Decisions converge: applied over and over at one moment, without new jobs, they end with nothing to do (`preemption`).
"""

import numpy as np

from service.scheduler.model.columns import Bools
from service.scheduler.model.decisions import CancelPreemption, Decision, Preempt, Start
from service.scheduler.model.fractions import shareable_gpus
from service.scheduler.model.jobs import Waiting
from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.blocked import Blocked
from service.scheduler.policy.feasibility import FeasibilityFilter
from service.scheduler.policy.in_order import in_order
from service.scheduler.policy.order import Ranking, rank_jobs
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest
from service.scheduler.policy.preemption import Victims, stoppable
from service.scheduler.policy.promises import soon, sparing
from service.scheduler.policy.quotas import RemainingQuotas, spent
from service.scheduler.policy.requests import placement_request, preempts
from service.scheduler.policy.reserved import ReservationMask
from torchyard.ids import JobId
from torchyard.spec.policy import Policy

#: Numbers of jobs of which it is checked together whether each could preempt enough: with fewer it saves nothing, and
#: of more most are ruled out with others anyway.
_CHECKED_TOGETHER = range(3, 257)


def decide(state: SchedulerState, now_us: int, policy: Policy) -> list[Decision]:
    """Return the decisions of one scheduling pass at `now_us`, in microseconds; the state is not changed.

    While the queue is paused nothing starts, and preemptions that are under way are taken back.
    """
    if state.paused:
        return [CancelPreemption(for_job=job) for job in state.victims]
    if not state.waiting and not state.reservations:
        return []
    return SchedulingPass(state, now_us, policy).run()


class SchedulingPass:
    """One scheduling pass.

    `known` is the ranking of an earlier pass at the same moment, if nothing has happened since but what it decided:
    starting and preempting jobs do not change the ranking.
    """

    def __init__(self, state: SchedulerState, now_us: int, policy: Policy, known: Ranking | None = None) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        #: The order of the jobs, once it was needed.
        self.ranking = known
        self._preempts = preempts(policy)
        capacities = {node: capacity for node, capacity in state.capacities().items() if capacity.info.closed is None}
        self.mask = ReservationMask(state, capacities, now_us, policy) if state.reservations else None
        self.cluster = (
            ClusterCapacity(capacities=capacities)
            if self.mask is None
            else ClusterCapacity(capacities=capacities, mask=self.mask.masked)
        )
        self.quotas = RemainingQuotas(state, now_us)
        #: Placements of the jobs that others are preempted for, once those have left.
        self.promises: dict[JobId, tuple[Placement, ...]] = {}
        self._decisions: list[Decision] = []
        #: Jobs that are decided: they start now, or get what others leave for them.
        self.decided: set[JobId] = set()

    def run(self) -> list[Decision]:
        """Return the decisions; call it once."""
        if self.mask is not None:
            self._decisions += self.mask.evictions(self._policy)
        state = self._state
        self._undecided = state.table.queued()
        if len(self._undecided) and (state.promised or state.victims):
            self._keep_promises()
            rows = [state.table.rows[job] for job in self.decided]
            self._undecided = self._undecided[~np.isin(self._undecided, rows)]
        if len(self._undecided) and not self._start_only_job():
            free = max([len(capacity.free) for capacity in self.cluster.capacities.values()], default=-1)
            self._feasibility = FeasibilityFilter(state, free, spent(self.quotas, state))
            self._stoppable = stoppable(state, self._now_us, self._policy) if self._preempts and state.running else None
            if self._any_fits() or (self._stoppable is not None and np.count_nonzero(self._stoppable)):
                self._try_in_order()
        return self._decisions

    def _start_only_job(self) -> bool:
        """Start the job if it is the only one, for which no order is needed; return False if it does not fit."""
        if len(self._undecided) > 1:
            return False
        job = self._state.waiting[self._state.table.jobs[self._undecided[0]]]
        forbidden = self.quotas.forbid(self._class_of(job.job))
        placements = () if forbidden else self.cluster.find(placement_request(job, self._now_us, self._policy))
        if placements:
            self._start(job, placements)
        return bool(placements)

    def _any_fits(self) -> bool:
        fitting = self._feasibility.fitting
        # The first condition is the cheap one: most decisions of a full cluster end there, without reading the queue.
        return bool(
            np.count_nonzero(fitting) and np.count_nonzero(fitting[self._state.table.class_id[self._undecided]])
        )

    def _keep_promises(self) -> None:
        """Start the jobs that others were preempted for, or hold for them the devices that are free already."""
        state = self._state
        names = dict.fromkeys([*state.promised, *state.victims])
        waiting = [state.waiting[JobId(name)] for name in names if name in state.waiting]
        waiting.sort(key=lambda job: (-job.priority, job.number))
        may_start = [job for job in waiting if job.ineligible is None and not self._withdrawn(job.job)]
        requests = [placement_request(job, self._now_us, self._policy) for job in may_start]
        kept = {
            request.job
            for request, placements in sparing(state, self.cluster, requests)
            if self._keep_promise(request, placements)
        }
        spared = [job.job for job in waiting if job.job in state.victims and job.job not in kept]
        self._decisions += [CancelPreemption(for_job=job) for job in spared]

    def _withdrawn(self, job: JobId) -> bool:
        """Return whether a quota forbids a job to start that others were preempted for."""
        return self.quotas.forbid(self._class_of(job), promised=True)

    def _keep_promise(self, request: PlacementRequest, placements: tuple[Placement, ...]) -> bool:
        """Start the job, at these placements if any are given, or hold those that it gets after its preemption.

        Returns False if neither is possible any more.
        """
        if self._withdrawn(request.job):
            return False
        job = self._state.waiting[request.job]
        placements = placements or self.cluster.find(request)
        if placements:
            self._start(job, placements)
            return True
        placements = soon(self._state, self.cluster, request.job).find(request)
        if placements:
            self._take(job, placements)
        return bool(placements)

    def _try_in_order(self) -> None:
        """Try the jobs in their order until none of them is feasible any more."""
        state, policy = self._state, self._policy
        self.ranking = ranking = rank_jobs(state, self._now_us, policy) if self.ranking is None else self.ranking
        self._victims = None
        if self._stoppable is not None:
            self._victims = Victims(state, ranking, self._stoppable, self._now_us, policy)
            self._victims.stop(one.job for one in self._decisions if isinstance(one, Preempt))
        rows, feasible = self._undecided, self._feasible(ranking)
        reserved = [] if self.mask is None else [one.reservation.starts_us for one in self.mask.reserved]
        self._blocked = Blocked(
            state, self._now_us, policy, ranking, self._feasibility, self.quotas, self.cluster, reserved
        )
        self._blocked.begin(rows, feasible)
        for row in in_order(rows[feasible], ranking.key, state.table.columns[Column.NUMBER], self._blocked.feasible):
            if not self._try(row):
                break
        # Only once nobody else leaves: who is preempted may be the next for whom nodes are held.
        if not any(isinstance(one, Preempt) for one in self._decisions):
            self._decisions += [one for one in self._blocked.put_back() if one.for_job not in self.decided]

    def _feasible(self, ranking: Ranking) -> Bools:
        """Return which of the waiting rows are feasible, after finding out which of them might preempt a job."""
        feasibility, victims, rows = self._feasibility, self._victims, self._undecided
        might: Bools = np.zeros(len(self._state.table), dtype=bool)
        together = len(rows) in _CHECKED_TOGETHER
        if victims and together:
            might[rows] = victims.suffice(rows, self.cluster.capacities)
        elif victims:
            might = victims.might()
        feasibility.set_ranking(ranking, might, self._now_us)
        feasible = feasibility.feasible(rows)
        if not victims or together:
            return feasible
        some = rows[feasible & might[rows]]
        if len(some) in _CHECKED_TOGETHER:
            might[some] = victims.suffice(some, self.cluster.capacities)
            feasible = feasibility.feasible(rows)
        return feasible

    def _try(self, row: int) -> bool:
        """Start the job, preempt others for it, or let it wait; return False if no job after it may start."""
        state, feasibility = self._state, self._feasibility
        class_id = int(feasibility.class_id[row])
        may_start, may_preempt = feasibility.may_start(row, class_id), feasibility.may_preempt(row, class_id)
        if not (may_start or may_preempt or feasibility.may_hold(row, class_id)):
            self._blocked.note_infeasible(np.array([row]))
            return True
        if not self._blocked.may_overtake(row):
            return False
        if self.quotas.forbid(class_id):
            feasibility.quota_reached(class_id)
            return True
        job = state.waiting[state.table.jobs[row]]
        request = placement_request(job, self._now_us, self._policy)
        self._blocked.protect_from(request)
        if may_start and self._try_start(job, request, class_id):
            return True
        if may_preempt and self._try_preemption(job, request, row, class_id):
            return True
        return self._blocked.wait(row, class_id)

    def _try_start(self, job: Waiting, request: PlacementRequest, class_id: int) -> bool:
        placements = self.cluster.find(request)
        if placements:
            self._start(job, placements)
        elif self.cluster.bound and self.cluster.unbound().find(request):
            self._feasibility.only_held_capacity(class_id)
        else:
            self._feasibility.no_capacity(class_id)
        return bool(placements)

    def _try_preemption(self, job: Waiting, request: PlacementRequest, row: int, class_id: int) -> bool:
        victims = self._victims
        assert victims is not None
        plan = victims.plan(request, row, class_id, self.cluster)
        if plan is None:
            self._feasibility.nobody_to_stop(row, class_id, bound=self.cluster.bound)
            return False
        victims.stop(victim.job.job for victim in plan.victims)
        for victim in plan.victims:
            self._decisions.append(Preempt(job=victim.job.job, for_job=job.job, reason=victim.cause))
        self.promises[job.job] = plan.placements
        # The victims keep their devices until they have left: of the free ones, this takes the rest of what it needs.
        self._take(job, plan.placements)
        return True

    def _class_of(self, job: JobId) -> int:
        return int(self._state.table.class_id[self._state.table.rows[job]])

    def _start(self, job: Waiting, placements: tuple[Placement, ...]) -> None:
        self._decisions.append(Start(job=job.job, placements=placements))
        self._take(job, placements)

    def _take(self, job: Waiting, placements: tuple[Placement, ...]) -> None:
        self.cluster.take(job.job, job.resources, placements)
        self.decided.add(job.job)
        if self.quotas.bounded:
            expected = 0 if job.remaining is None else job.remaining.p50_us
            shareable = shareable_gpus(job.resources, placements, self._state.nodes)
            self.quotas.charge(self._state.classes.key(self._class_of(job.job)), expected, shareable)
