"""Forecast of the start of a waiting job: the policy itself, run forward in time over a copy of the state.

Two futures are simulated: one in which every job takes its median running time (p50), and one in which every job takes
the time that only one in ten exceeds (p90), a pessimistic case. The work is bounded, by numbers of decisions and of
jobs; beyond, and where a job ahead might never end, there is no forecast. Of the queue only the jobs ahead count, and a
few behind, which may be backfilled.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from service.scheduler.model.decisions import CancelPreemption, Preempt, PutBack, Start
from service.scheduler.model.jobs import IneligibleReason, Running
from service.scheduler.model.nodes import ClosedReason, Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from service.scheduler.policy.ends import Quantile, end_us
from service.scheduler.policy.maintenance import takes_jobs_us
from service.scheduler.policy.order import order
from torchyard.ids import JobId
from torchyard.spec.policy import Policy

#: Most decisions of a future, and most jobs and nodes that all of them together look at.
MAX_DECISIONS = 96
MAX_WORK = 25_000
#: Waiting jobs ahead of the one that is asked for, and behind it.
MAX_AHEAD, MAX_BEHIND = 256, 32
#: Events within this fraction (1 / FINENESS) of the time simulated so far count as simultaneous.
FINENESS = 20
#: A job that should have ended by now is taken to last this much longer.
OVERDUE_US = 10 * 1_000_000


class Expected(NamedTuple):
    """Expected start of a job, in microseconds; None where there is no forecast."""

    p50_us: int | None
    p90_us: int | None
    #: Where it then starts in the median case, and when it then ends in either; infinite if it might never.
    placements: tuple[Placement, ...] = ()
    end_p50_us: float = math.inf
    end_p90_us: float = math.inf


class _SimulatedRun(NamedTuple):
    """Start of a waiting job in a simulated future, in microseconds, and the end that it then has."""

    start_us: int
    end_us: float
    placements: tuple[Placement, ...]


def expected_start(
    state: SchedulerState, job: JobId, now_us: int, policy: Policy, queue: Sequence[JobId] | None = None
) -> Expected:
    """Forecast when a waiting job starts; `queue` is the order of the queue, if the caller has it already."""
    queue = order(state, now_us, policy) if queue is None else queue
    near = _near(state, queue, job)
    return Expected(None, None) if near is None else _play(near, [job], now_us, policy, MAX_DECISIONS)[job]


def likely_start(state: SchedulerState, job: JobId, now_us: int, policy: Policy) -> int | None:
    """Forecast only the median of a waiting job's start, in microseconds; None where there is no forecast."""
    near = _near(state, order(state, now_us, policy), job)
    run = None if near is None else _Future(near, now_us, policy, "p50_us").starts([job], MAX_DECISIONS).get(job)
    return None if run is None else run.start_us


def expected_starts(
    state: SchedulerState, jobs: Sequence[JobId], now_us: int, policy: Policy, queue: Sequence[JobId]
) -> dict[JobId, Expected]:
    """Forecast the starts of several jobs, the first of the queue, in one run; ineligible jobs are left out."""
    near = _part(state, queue[: len(jobs) + MAX_BEHIND])
    asked = [job for job in jobs if job in near.waiting]
    return _play(near, asked, now_us, policy, MAX_DECISIONS // 2)


def _play(
    state: SchedulerState, jobs: Sequence[JobId], now_us: int, policy: Policy, decisions: int
) -> dict[JobId, Expected]:
    p50 = _Future(state, now_us, policy, "p50_us").starts(jobs, decisions)
    p90 = _Future(state, now_us, policy, "p90_us").starts(list(p50), decisions)
    return {job: _expected(p50.get(job), p90.get(job)) for job in jobs}


def _expected(p50: _SimulatedRun | None, p90: _SimulatedRun | None) -> Expected:
    if p50 is None:
        return Expected(None, None)
    if p90 is None:
        return Expected(p50.start_us, None, p50.placements, p50.end_us)
    late, end = max(p50.start_us, p90.start_us), max(p50.end_us, p90.end_us)
    return Expected(p50.start_us, late, p50.placements, p50.end_us, end)


def _near(state: SchedulerState, queue: Sequence[JobId], job: JobId) -> SchedulerState | None:
    """Return the state with the part of the queue that matters for the job; None if ineligible or too far back."""
    waiting = state.waiting.get(job)
    if waiting is None or waiting.ineligible not in (None, IneligibleReason.SAVING):
        return None
    eligible = (place for place, each in enumerate(queue) if each == job or state.waiting[each].ineligible is None)
    # No further than it matters: its place in a long queue is not looked for.
    place = next((place for place in islice(eligible, MAX_AHEAD + 1) if queue[place] == job), None)
    if place is None:
        return None
    near = _part(state, queue[: place + 1 + MAX_BEHIND])
    near.put([replace(waiting, ineligible=None)])
    return near


def _part(state: SchedulerState, queue: Sequence[JobId]) -> SchedulerState:
    """Return the state with only these jobs waiting, as far as they are eligible."""
    jobs = {job: state.waiting[job] for job in queue if state.waiting[job].ineligible is None}
    return replace(state, waiting=jobs, running=dict(state.running), promised=dict(state.promised))


class _Future:
    """One simulated future, in which every job takes the same quantile of its running time."""

    def __init__(self, state: SchedulerState, now_us: int, policy: Policy, quantile: Quantile) -> None:
        self._state = state.copy()
        self._now_us = self._begun_us = now_us
        self._policy = policy
        self._quantile = quantile
        self._ends = {job.job: self._end(job) for job in state.running.values()}
        #: Jobs that are being preempted, and when they leave their devices.
        self._stopping = {job.job: self._gone_us(job) for job in state.running.values() if job.preempted_for}
        self._reopen()

    @property
    def _cost_us(self) -> int:
        return self._policy.preemption_cost * 1_000_000

    def _gone_us(self, job: Running) -> int:
        """Return when a job that is being preempted leaves its devices.

        The median is `preemption_cost` after the request, or if that has passed, half way to when its checkpoint is
        due; the p90 is `preemption_cost` after the checkpoint is due. Once it is due, or the job is being stopped, both
        are `preemption_cost` from now.
        """
        if job.stops or job.due_us <= self._now_us:
            return self._now_us + self._cost_us
        if self._quantile == "p90_us":
            return job.due_us + self._cost_us
        soon = job.asked_us + self._cost_us
        return soon if soon > self._now_us else (self._now_us + job.due_us) // 2

    def starts(self, jobs: Sequence[JobId], decisions: int) -> dict[JobId, _SimulatedRun]:
        """Return the first run of each of these jobs; jobs that start after the simulated time are absent."""
        found: dict[JobId, _SimulatedRun] = {}
        size = len(self._state.waiting) + len(self._state.running) + 8 * len(self._state.nodes)
        for _ in range(min(decisions, MAX_WORK // max(1, size))):
            self._decide()
            found |= {job: self._run(job) for job in jobs if job in self._state.running and job not in found}
            later = min(self._moments(), default=math.inf)
            if len(found) == len(jobs) or later == math.inf:
                break
            step_us = (self._now_us - self._begun_us) // FINENESS
            self._now_us = max(math.ceil(later), self._now_us + step_us)
            self._pass_by()
        return found

    def _decide(self) -> None:
        for decision in decide(self._state, self._now_us, self._policy):
            if isinstance(decision, Start):
                self._start(decision)
            elif isinstance(decision, Preempt):
                self._stop(decision)
            elif isinstance(decision, PutBack):
                self._forget(decision.job)
                self._state.requeue(decision.job, self._now_us)
            else:
                self._cancel_preemption(decision)

    def _start(self, start: Start) -> None:
        running = self._state.start(start.job, start.placements, self._now_us)
        self._ends[start.job] = self._end(running)

    def _run(self, job: JobId) -> _SimulatedRun:
        return _SimulatedRun(self._now_us, self._ends[job], self._state.running[job].placements)

    def _stop(self, preempt: Preempt) -> None:
        victim = self._state.running[preempt.job]
        self._state.put([replace(victim, preempted_for=preempt.for_job)])
        self._stopping[preempt.job] = self._now_us + self._cost_us

    def _cancel_preemption(self, cancel: CancelPreemption) -> None:
        for job in list(self._state.victims.get(cancel.for_job, ())):
            self._state.put([replace(self._state.running[job], preempted_for=None)])
            self._stopping.pop(job, None)

    def _end(self, job: Running) -> float:
        return end_us(job, self._quantile, self._now_us, earliest_us=self._now_us + OVERDUE_US)

    def _moments(self) -> Iterable[float]:
        """Yield the moments of change: a job ends or may be preempted from then on, a reservation begins or ends."""
        policy, now_us = self._policy, self._now_us
        for job in self._state.running.values():
            yield self._stopping.get(job.job, self._ends[job.job])
            if job.preemptible and (spared := job.since_us + policy.min_run * 1_000_000) > now_us:
                yield spared
        for each in self._state.reservations:
            yield from (moment for moment in (each.starts_us, each.ends_us) if moment > now_us)

    def _reopen(self) -> None:
        """Reopen the draining nodes whose maintenance is over."""
        state = self._state
        draining = [info for info in state.nodes.values() if info.closed is ClosedReason.DRAINING]
        over = [info for info in draining if takes_jobs_us(state, info) <= self._now_us]
        if over:
            state.nodes = {**state.nodes, **{info.name: replace(info, closed=None) for info in over}}

    def _pass_by(self) -> None:
        self._reopen()
        for job in [job for job, end in self._ends.items() if end <= self._now_us]:
            self._forget(job)
            self._state.remove(job)
        for job in [job for job, end in self._stopping.items() if end <= self._now_us]:
            self._forget(job)
            self._state.requeue(job, self._now_us)

    def _forget(self, job: JobId) -> None:
        del self._ends[job]
        self._stopping.pop(job, None)
