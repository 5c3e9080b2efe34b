"""Apply the policy: load, decide, commit each decision, tell the nodes."""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable

from service import lifecycle
from service.context import Context
from service.db.leader import Leader
from service.infra.observability import Counters
from service.preemption import two_phase
from service.scheduler.explain.idle_time import IdleGpus, IdleTime, idle_gpus
from service.scheduler.model.decisions import CancelPreemption, Cause, Decision, Preempt, PutBack, Start
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass, decide
from torchyard.ids import JobId
from torchyard.spec.policy import Policy

_log = logging.getLogger(__name__)


class Scheduler:
    """One pass at a time; what cannot be applied because something changed meanwhile is left to the next."""

    def __init__(self, ctx: Context, leader: Leader, counters: Counters) -> None:
        self._ctx = ctx
        self._leader = leader
        self._counters = counters
        self._term: int | None = None
        self._idle = IdleTime(ctx.now_us())

    def run(self) -> None:
        """Do a pass, if this service leads."""
        if not self._leader.leads():
            return
        if self._term != self._leader.terms:
            self._term = self._leader.terms
            self._ctx.loader.recall()
            self._idle = IdleTime(self._ctx.now_us())
        started = time.perf_counter()
        self.run_pass()
        self._counters.pass_seconds.observe(time.perf_counter() - started)

    def run_pass(self) -> int:
        """Look at everything once; return how many jobs were given devices."""
        looked_us = self._ctx.now_us()
        decisions, preempting = self._decide()
        if preempting:
            cancelled = frozenset(one.for_job for one in decisions if isinstance(one, CancelPreemption))
            two_phase.advance(self._ctx.db, self._ctx.now_us, cancelled)
        self._preempt(decision for decision in decisions if isinstance(decision, Preempt))
        self._put_back(decision for decision in decisions if isinstance(decision, PutBack))
        return sum(self._start(decision, looked_us) for decision in decisions if isinstance(decision, Start))

    def _decide(self) -> tuple[list[Decision], bool]:
        """Return what to do now, and whether preemptions are under way."""
        ctx = self._ctx
        now = ctx.now_us()
        with ctx.loader.live(ctx.db, now) as (tx, state):
            if not ctx.loader.busy:
                self._look(IdleGpus(), now)
                return [], False
            return self._pass(state, now, ctx.loader.policy(tx)), bool(state.victims)

    def _pass(self, state: SchedulerState, now: int, policy: Policy) -> list[Decision]:
        if state.paused:
            self._look(IdleGpus(), now)
            return decide(state, now, policy)
        done = SchedulingPass(state, now, policy)
        decisions = done.run()
        self._look(idle_gpus(state, done.cluster, now, policy, done.decided), now)
        return decisions

    def _look(self, idle: IdleGpus, now: int) -> None:
        """Count the GPU time that was idle since the last pass."""
        passed = self._idle.look(idle, now)
        for kind, gpu_us in passed._asdict().items():
            self._counters.idle.labels(kind).inc(gpu_us / 1e6)

    def _preempt(self, decisions: Iterable[Preempt]) -> None:
        """Preempt the victims of one job together, and those in the way of a reservation each by itself."""
        groups: defaultdict[tuple[str, str], dict[JobId, Cause]] = defaultdict(dict)
        for one in decisions:
            alone = one.job if one.reason is Cause.RESERVATION else ""
            groups[one.for_job, alone][one.job] = one.reason
        for (preemptor, _), jobs in groups.items():
            try:
                two_phase.begin(self._ctx.db, self._ctx.now_us, jobs, preemptor)
            except lifecycle.Conflict as conflict:
                _log.info("%s does not get what others hold: %s", preemptor, conflict)

    def _put_back(self, decisions: Iterable[PutBack]) -> None:
        for one in decisions:
            try:
                two_phase.put_back(self._ctx.db, self._ctx.now_us, one.job, one.for_job)
            except lifecycle.Conflict as conflict:
                _log.info("%s is not put back: %s", one.job, conflict)

    def _start(self, decision: Start, looked_us: int) -> bool:
        ctx = self._ctx
        try:
            with ctx.db.write() as tx:
                lifecycle.assign(tx, decision.job, decision.placements, ctx.now_us(), looked_us)
        except lifecycle.Conflict as conflict:
            _log.info("job %s was not assigned: %s", decision.job, conflict)
            return False
        return True
