"""Discrete-event simulation of the scheduler's own policy over a trace.

The policy reads only what it could know in the live service (`knowledge`), and preemption costs what it costs there: a
preempted job keeps its work if it has checkpoints, but its next start takes `cost_us` before it makes progress. The
preemption itself takes no time: the preemptor starts at once. Decisions are made when something happens (a job is
submitted, ends, gets an estimate of its own or may be preempted again, or a reservation is made, comes near, begins or
is over) and, while jobs wait, when nothing was decided for `REVIEW_US`, because jobs age and quotas of GPU-hours renew.
A node drains for its maintenance as long before it as on a real box. Where the policy could do nothing, it is not run:
while all GPUs are held if it preempts no job, for jobs behind a blocked one without backfill, and for a job that gets
an estimate or may be preempted again if it comes before all that wait.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache

from service.scheduler.explain.idle_time import IdleGpus, IdleTime, idle_gpus
from service.scheduler.model.decisions import Cause, Preempt, PutBack, Start
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import ClosedReason, NodeInfo, Placement, Slot
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass
from service.scheduler.policy.order import Ranking, rank_jobs
from service.scheduler.policy.placement import ClusterCapacity, Hold
from service.scheduler.policy.preemption import in_the_way
from service.scheduler.policy.reserved import ReservationMask
from service.scheduler.policy.trials import tries
from service.simulator.accounts import SimulatedAccounts
from service.simulator.knowledge import ORACLES, TOLD_US, Knowledge
from service.simulator.quotas import Quotas
from service.simulator.reservations import ReservationCalendar, TraceReservation
from service.simulator.runs import JobRun, Spell
from service.simulator.trace import SECOND, Cluster, TraceJob
from torchyard.ids import JobId
from torchyard.spec.policy import Order, Policy
from torchyard.spec.restarts import RestartPermission, may_be_put_back

REVIEW_US = 600 * SECOND
#: Orders that change while nothing happens.
AGING = frozenset({Order.FAIR, Order.LAS})
#: Waiting jobs that the policy sees at a time where no job may start before a blocked one.
_WINDOW = 64
_NO_QUOTAS = Quotas()
#: So many jobs end between two reports of progress.
_WORD = 256


class _EventKind(IntEnum):
    """Kind of an event; simultaneous events happen in this order."""

    END = 0
    TOLD = 1
    SPARED = 2


@dataclass(kw_only=True, slots=True)
class _Live:
    """A job while it is simulated."""

    job: TraceJob
    #: GPUs that it holds while it runs.
    gpus: float
    left_us: int
    #: Start of this spell; -1 if it does not run.
    start_us: int = -1
    #: Time without progress at the beginning of this spell.
    lost_us: int = 0
    #: Its remaining time is known to the policy.
    told: bool
    #: How often it was put back, to start from the beginning.
    restarts: int = 0
    placements: tuple[Placement, ...] = ()
    spells: list[Spell] = field(default_factory=list)

    def done_us(self, now_us: int) -> int:
        """Return the work done in this spell, in microseconds."""
        return max(now_us - self.start_us - self.lost_us, 0)


def _id(number: int) -> JobId:
    """Return the id of a job of the trace, by which the policy knows it."""
    return JobId(str(number))


def _nobody(ended: int) -> None:
    del ended


def simulate(
    trace: Sequence[TraceJob],
    cluster: Cluster,
    policy: Policy,
    cost_us: int,
    quotas: Quotas = _NO_QUOTAS,
    reservations: Sequence[TraceReservation] = (),
    tell: Callable[[int], None] = _nobody,
    idle: IdleTime | None = None,
) -> list[JobRun]:
    """Simulate the jobs of a trace, sorted by submission, and return their runs in the same order.

    `tell` is called from time to time with the number of jobs that have ended; `idle` is counted up if given. Raises
    TraceError if a job could never run. Jobs that their quotas never let start must be left out of the trace
    (`quotas.startable`).
    """
    cluster.check(trace)
    calendar = ReservationCalendar(reservations, policy.checkpoint_timeout * SECOND)
    return _Engine(trace, cluster, policy, cost_us, quotas, calendar, idle).run(tell)


class _Engine:
    def __init__(
        self,
        trace: Sequence[TraceJob],
        cluster: Cluster,
        policy: Policy,
        cost_us: int,
        quotas: Quotas,
        calendar: ReservationCalendar,
        idle: IdleTime | None,
    ) -> None:
        self._trace, self._policy, self._cost_us = trace, policy, cost_us
        self._knowledge = Knowledge(policy.order)
        self._spread = cache(cluster.spread)
        begin_us, half_life_us = (trace[0].submit_us if trace else 0), policy.half_life * SECOND
        self._users = SimulatedAccounts(quotas.of("user", {job.user for job in trace}), begin_us, half_life_us)
        self._projects = SimulatedAccounts(quotas.of("project", {job.project for job in trace}), begin_us, half_life_us)
        self._weekly = self._users.weekly or self._projects.weekly
        self._calendar, self._infos = calendar, _infos(cluster)
        self._state = SchedulerState(nodes=self._infos, users=self._users.known, projects=self._projects.known)
        oracle = policy.order in ORACLES
        self._jobs = [_live(job, cluster, told=oracle) for job in trace]
        #: Heap of events: time, kind, number of the job, number of the spell that it belongs to.
        self._events: list[tuple[int, _EventKind, int, int]] = []
        self._now_us = 0
        self._next = self._ended = 0
        self._idle = idle
        #: What the last decision held for blocked jobs, by node.
        self._holds: Mapping[str, Hold] = {}
        #: Jobs that have just got an estimate of their own, or may be preempted again.
        self._shown: list[JobId] = []
        #: When the last decision was due.
        self._decided_us = 0
        self._free: float = cluster.total
        self._calm = not policy.preemption and policy.time_slice is None
        self._trials = tries(policy)
        # A job over a quota blocks no other, so with quotas the policy sees all of the queue.
        self._strict = self._calm and not policy.backfill and not quotas and not calendar
        #: Submitted jobs that the policy does not see yet.
        self._behind: deque[Waiting] = deque()
        self._renewing = policy.order in AGING or self._weekly

    def run(self, tell: Callable[[int], None]) -> list[JobRun]:
        """Run until all jobs have ended, and return their runs in the order of the trace."""
        told = 0
        while self._next < len(self._trace) or self._state.running or self._state.waiting:
            self._now_us = self._upcoming()
            blocked = self._strict and bool(self._state.waiting)
            changed = self._happen()
            changed |= self._reserve()
            changed |= self._submit() and not blocked
            changed |= self._now_us == self._review_us()
            possible, known = self._possible(), None
            if possible and self._shown and not changed:
                known = rank_jobs(self._state, self._now_us, self._policy)
                changed = in_the_way(self._state, known, self._shown)
            if changed:
                self._decided_us = self._now_us
                if possible:
                    self._decide(known)
            if self._idle is not None:
                self._idle.look(self._idle_gpus(), self._now_us)
            if self._ended - told >= _WORD:
                told = self._ended
                tell(told)
        return [
            JobRun(job=live.job, gpus=live.gpus, spells=tuple(live.spells), restarts=live.restarts)
            for live in self._jobs
        ]

    def _possible(self) -> bool:
        """Return whether the policy could do anything: start a job, or stop one for another or for a reservation."""
        waits = bool(self._state.waiting) and (self._free > 0 or not self._calm)
        return waits or bool(self._state.reservations)

    def _idle_gpus(self) -> IdleGpus:
        state, now_us = self._state, self._now_us
        capacities = {node: capacity for node, capacity in state.capacities().items() if capacity.info.closed is None}
        cluster = ClusterCapacity(capacities=capacities, holds=dict(self._holds))
        if state.reservations:
            cluster.mask = ReservationMask(state, capacities, now_us, self._policy).masked
        return idle_gpus(state, cluster, now_us, self._policy)

    def _upcoming(self) -> int:
        upcoming_us = min(self._review_us(), self._calendar.next_us)
        if self._events:
            upcoming_us = min(upcoming_us, self._events[0][0])
        if self._next < len(self._trace):
            upcoming_us = min(upcoming_us, self._trace[self._next].submit_us)
        return int(upcoming_us)

    def _review_us(self) -> float:
        """Return when to decide again though nothing happens, in microseconds; infinite if there is no need."""
        return self._decided_us + REVIEW_US if self._renewing and self._state.waiting else math.inf

    def _happen(self) -> bool:
        """Process all events that are due; return whether a decision is needed, apart from jobs in `_shown`."""
        changed = False
        self._shown.clear()
        while self._events and self._events[0][0] <= self._now_us:
            _, kind, number, spell = heapq.heappop(self._events)
            live = self._jobs[number]
            if live.start_us < 0 or len(live.spells) != spell:
                continue
            if kind is _EventKind.END:
                self._end(number)
                changed = True
                continue
            if kind is _EventKind.TOLD:
                self._told(number)
                changed |= bool(self._state.reservations)
            if kind is _EventKind.SPARED or self._policy.order is Order.FAIR:
                self._shown.append(_id(number))
        return changed

    def _reserve(self) -> bool:
        """Bring reservations and draining nodes up to date; return whether anything has changed."""
        if not self._calendar.pass_to(self._now_us):
            return False
        state = self._state
        state.reservations = self._calendar.known(self._now_us)
        drained = self._calendar.drained(self._now_us)
        state.nodes = {name: _draining(info, drained.get(name)) for name, info in self._infos.items()}
        for job in list(state.running.values()):
            if any(placement.node in drained for placement in job.placements):
                self._stop(job.number)
        return True

    def _submit(self) -> bool:
        first = self._next
        while self._next < len(self._trace) and self._trace[self._next].submit_us <= self._now_us:
            job = self._trace[self._next]
            nodes, resources = self._spread(job.gpus, job.gpu_share)
            waiting = Waiting(
                job=_id(self._next),
                number=self._next,
                user=job.user,
                project=job.project,
                priority=job.priority,
                resources=resources,
                nodes=nodes,
                eligible_us=job.submit_us,
                remaining=self._knowledge.of_new(job),
                preemptible=job.stoppable,
                restartable=self._restartable(self._jobs[self._next]),
            )
            if self._strict and len(self._state.waiting) >= _WINDOW:
                self._behind.append(waiting)
            else:
                self._state.put([waiting])
            self._next += 1
        return self._next > first

    def _restartable(self, live: _Live) -> bool:
        """Return whether the job may be put back after its next trial, by the rule of the live scheduler."""
        if not self._trials or live.job.keeps_work:
            return False
        permission, project, attempts = live.job.restartable, live.job.project, len(live.spells)
        return may_be_put_back(permission, project, self._policy, attempts=attempts, restarts=live.restarts)

    def _decide(self, known: Ranking | None) -> None:
        """Decide until nothing more can start; `known` is the ranking of the jobs at this moment, if there is one."""
        if self._weekly:
            self._users.renew(self._now_us)
            self._projects.renew(self._now_us)
        again = True
        while again:
            this = SchedulingPass(self._state, self._now_us, self._policy, known)
            decisions = this.run()
            self._holds = this.cluster.holds
            stopped = {int(one.job): one for one in decisions if isinstance(one, Preempt | PutBack)}
            for number, one in stopped.items():
                self._stop(number, put_back=_puts_back(one, self._jobs[number].job))
            starts = {one.job: one.placements for one in decisions if isinstance(one, Start)} | this.promises
            for job, placements in starts.items():
                self._start(int(job), placements)
            # Those that have left may fit elsewhere. Who starts over has longer to go than the ranking says.
            again = bool(stopped and self._free)
            known = this.ranking if all(self._jobs[number].job.keeps_work for number in stopped) else None
            if self._show_more():
                again, known = True, None

    def _show_more(self) -> bool:
        """Show the policy more of the queue, up to the window's size; return whether there was more."""
        more = self._behind and len(self._state.waiting) < _WINDOW
        while self._behind and len(self._state.waiting) < _WINDOW:
            self._state.put([self._behind.popleft()])
        return bool(more)

    def _start(self, number: int, placements: tuple[Placement, ...]) -> None:
        live, now_us = self._jobs[number], self._now_us
        running = self._state.start(_id(number), placements, now_us)
        if not live.job.keeps_work:
            running = replace(running, starts_over=True)
            self._state.put([running])
        live.start_us, live.lost_us = now_us, self._cost_us if live.spells else 0
        if running.restartable:
            self._try(running, now_us + live.lost_us)
        live.placements = placements
        self._free -= live.gpus
        self._push(now_us + live.lost_us + live.left_us, _EventKind.END, number)
        if live.job.reports and not live.told:
            done_us = live.job.duration_us - live.left_us
            self._push(now_us + live.lost_us + max(TOLD_US - done_us, 0), _EventKind.TOLD, number)
        if self._policy.min_run and not self._calm:
            self._push(now_us + self._policy.min_run * SECOND, _EventKind.SPARED, number)

    def _try(self, running: Running, begun_us: int) -> None:
        """Begin the trial of a job that cannot be stopped otherwise, at its first step."""
        ends_us = begun_us + (self._policy.time_slice or 0) * SECOND
        self._state.put([replace(running, begun_us=begun_us, trial_ends_us=ends_us)])
        self._push(ends_us, _EventKind.SPARED, running.number)

    def _push(self, at_us: int, kind: _EventKind, number: int) -> None:
        heapq.heappush(self._events, (at_us, kind, number, len(self._jobs[number].spells)))

    def _told(self, number: int) -> None:
        """Give a running job the estimate that its own steps now tell."""
        live = self._jobs[number]
        live.told = True
        running = self._state.running[_id(number)]
        left_us = live.left_us - live.done_us(self._now_us)
        self._state.put([replace(running, remaining=self._knowledge.of_known(left_us, self._now_us))])

    def _stop(self, number: int, *, put_back: bool = False) -> None:
        """Preempt a job, or stop it because its node drains: it goes back to the queue with the work that it has done,
        or to start from the beginning. If it was `put_back` after its trial for that, nobody is charged.
        """
        live = self._jobs[number]
        again = not live.job.keeps_work
        live.left_us -= 0 if again else live.done_us(self._now_us)
        remaining = self._knowledge.of_known(live.left_us, None) if live.told else None
        waiting = self._state.requeue(_id(number), self._now_us, remaining)
        if again:
            live.lost_us = self._now_us - live.start_us
            live.restarts += put_back
        self._leave(live, charged=not put_back)
        if waiting.restartable and not self._restartable(live):
            self._state.put([replace(waiting, restartable=False)])

    def _end(self, number: int) -> None:
        live = self._jobs[number]
        self._ended += 1
        live.left_us = 0
        self._state.remove(_id(number))
        self._knowledge.learn(live.job)
        self._leave(live)

    def _leave(self, live: _Live, *, charged: bool = True) -> None:
        start_us, now_us = live.start_us, self._now_us
        lost_us = min(live.lost_us, now_us - start_us)
        live.spells.append(Spell(start_us=start_us, end_us=now_us, lost_us=lost_us, placements=live.placements))
        live.start_us = -1
        self._free += live.gpus
        if charged:
            self._users.charge(live.job.user, live.gpus, start_us, now_us)
            self._projects.charge(live.job.project, live.gpus, start_us, now_us)


def _live(job: TraceJob, cluster: Cluster, *, told: bool) -> _Live:
    return _Live(job=job, gpus=cluster.held(job), left_us=job.duration_us, told=told)


def _puts_back(decision: Preempt | PutBack, job: TraceJob) -> bool:
    """Return whether a job that starts over is put back, and not only preempted, by the rule of the live service."""
    if job.keeps_work:
        return False
    if isinstance(decision, PutBack) or decision.reason is Cause.TIME_SLICE:
        return True
    return not job.stoppable and job.restartable is not RestartPermission.ASKED


def _infos(cluster: Cluster) -> dict[str, NodeInfo]:
    return {name: _info(name, cluster) for name in cluster.names()}


def _info(name: str, cluster: Cluster) -> NodeInfo:
    memory = cluster.slot_memory
    slots = tuple(Slot(uuid=f"{name}/{index}", index=index, memory=memory) for index in range(cluster.gpus))
    return NodeInfo(name=name, slots=slots, cpus=0, memory=0)


def _draining(info: NodeInfo, maintenance: str | None) -> NodeInfo:
    """Return the node as it is while it drains for that maintenance, if for any."""
    return info if maintenance is None else replace(info, closed=ClosedReason.DRAINING, maintenance=maintenance)
