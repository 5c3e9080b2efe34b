"""Threads beside the requests: scheduling, watching, housekeeping."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from service.artifacts import discard, housekeeping
from service.context import Context
from service.controllers.monitor import Monitor
from service.controllers.rollups import RollUps
from service.controllers.scheduling import Scheduler
from service.db.leader import Leader
from service.identity import audit, tokens
from service.infra import heap
from service.infra.age_clock import AgeClock
from service.infra.observability import Counters
from service.infra.threads import Repeated

SCHEDULE_S = 1.0
MONITOR_S = 1.0
#: The database hears of the leader at least so often, however long a pass takes.
LEAD_S = 1.0
HOUSEKEEPING_S = 300.0
GIVE_BACK_S = 10.0
#: Stored bytes are compared with the files for the first time so long after the start, then every day.
FIRST_COMPARISON_US = 3_600_000_000


@contextmanager
def running(ctx: Context, woken: threading.Event, counters: Counters) -> Iterator[None]:
    """Start the loops and end them with the block; `woken` is what ``ctx.wake_scheduler`` sets."""
    leader = Leader(ctx.db)
    counters.leads.set_function(lambda: leader.is_known_to_lead)
    scheduler, monitor = Scheduler(ctx, leader, counters), Monitor(ctx, leader)

    compare_us = ctx.now_us() + FIRST_COMPARISON_US
    age_clock = AgeClock(ctx.now_us, ctx.monotonic)

    def clean() -> None:
        nonlocal compare_us
        now = age_clock()
        if not leader.leads():
            return
        with ctx.db.with_reserve():
            ctx.broker_accounts.keep(tokens.node_tokens(ctx.db, ctx.now_us()))
            housekeeping.sweep(ctx.db, ctx.store, now)
            audit.forget_old(ctx.db, now, ctx.settings.keep_audit_s)
            discard.sweep(ctx.db, ctx.store, now, ctx.settings.keep_ended_s)
            if ctx.now_us() >= compare_us:
                housekeeping.correct_sums(ctx.db)
                compare_us = ctx.now_us() + housekeeping.DAY_US

    failed = counters.housekeeping_errors.inc
    loops = [
        Repeated("leader", leader.leads, every_s=LEAD_S, failed=counters.monitor_errors.inc),
        Repeated("scheduler", scheduler.run, every_s=SCHEDULE_S, failed=counters.scheduler_errors.inc, woken=woken),
        Repeated("monitor", monitor.run, every_s=MONITOR_S, failed=counters.monitor_errors.inc),
        Repeated("rollups", RollUps(ctx).run, every_s=HOUSEKEEPING_S, failed=failed, woken=ctx.stored_points.look),
        Repeated("housekeeping", clean, every_s=HOUSEKEEPING_S, failed=failed),
        Repeated("memory", heap.give_back, every_s=GIVE_BACK_S, failed=failed),
    ]
    with ExitStack() as stack:
        stack.callback(leader.resign)
        for loop in loops:
            stack.enter_context(loop)
        yield
