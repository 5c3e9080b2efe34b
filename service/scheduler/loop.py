"""Applies the policy: load, decide, commit each decision, tell the nodes."""

import logging
import time

from service import lifecycle
from service.context import Context
from service.leader import Leader
from service.observability import Counters
from service.scheduler import former as policy

_log = logging.getLogger(__name__)


class Scheduler:
    """One pass at a time; what cannot be applied because something changed meanwhile is left to the next."""

    def __init__(self, ctx: Context, leader: Leader, counters: Counters) -> None:
        self._ctx = ctx
        self._leader = leader
        self._counters = counters

    def run(self) -> None:
        """A pass, if this service leads."""
        if not self._leader.leads():
            return
        started = time.perf_counter()
        self.run_pass()
        self._counters.pass_seconds.observe(time.perf_counter() - started)

    def run_pass(self) -> int:
        """Looks at queue and boxes once; returns how many jobs were given devices."""
        ctx = self._ctx
        now = ctx.now_us()
        with ctx.db.read() as tx:
            queue = ctx.loader.queue(tx, now)
            boxes = ctx.loader.boxes(tx) if queue else []
        return sum(self._apply(decision) for decision in policy.decide(queue, boxes, now))

    def _apply(self, decision: policy.Start) -> bool:
        ctx = self._ctx
        try:
            with ctx.db.write() as tx:
                attempt_id = lifecycle.assign(tx, decision.job, decision.places, ctx.now_us())
        except lifecycle.Conflict as conflict:
            _log.info("job %s was not assigned: %s", decision.job, conflict)
            return False
        nodes = [place.node for place in decision.places]
        for node in nodes:
            ctx.dispatcher.launch(node, attempt_id)
        ctx.hub.notify(f"job:{decision.job}", "jobs", "queue", *(f"node:{node}" for node in nodes))
        return True
