"""What a node reports of itself and of its attempts, each report in one unit of work."""

from service import lifecycle
from service.attempts import memory
from service.context import Context
from service.nodes import launches, registration
from service.telemetry import stacks
from torchyard import wire


def register(ctx: Context, message: wire.Register) -> None:
    """Store a node whose worker has started; `lifecycle.Conflict` if another machine has its name."""
    with ctx.unit_of_work() as unit:
        registration.register(unit.tx, message, unit.now, ctx.settings.heartbeat_s)
        unit.tell_node(message.node)
        unit.wake_scheduler()


def heartbeat(ctx: Context, node: str, message: wire.Heartbeat) -> wire.Orders:
    """Record a heartbeat; return the node's orders."""
    with ctx.unit_of_work() as unit:
        reply = registration.record_heartbeat(unit.tx, node, message, unit.now)
        unit.tell_node(node)
        if reply.wake:
            unit.wake_scheduler()
    return reply.orders


def launch(ctx: Context, node: str, attempt_id: str) -> wire.Launch:
    """Return all that is needed to start an attempt; problems as `launches.launch`."""
    with ctx.db.read() as tx:
        return launches.launch(tx, attempt_id, node)


def claim(ctx: Context, node: str, attempt_id: str, message: wire.Claim) -> None:
    """Give the attempt's member to the node; `lifecycle.Conflict` if it cannot be had."""
    with ctx.unit_of_work() as unit:
        lifecycle.claim(unit.tx, attempt_id, node, message.nonce, unit.now)


def prepared(ctx: Context, node: str, attempt_id: str, message: wire.Prepared) -> wire.Go:
    """Record that a member on one of several nodes can start; return whether all can."""
    with ctx.unit_of_work() as unit:
        return lifecycle.prepared(unit.tx, attempt_id, node, message, unit.now)


def running(ctx: Context, attempt: memory.AttemptIdentity, message: wire.Started) -> None:
    """Record that the job's first instruction ran."""
    with ctx.unit_of_work() as unit:
        lifecycle.mark_running(unit.tx, attempt.id, message.started_us, unit.now)
        ctx.estimator.begin(unit.tx, attempt.job_id, unit.now)


def result(ctx: Context, node: str, attempt: memory.AttemptIdentity, message: wire.Result) -> None:
    """Record how the attempt's member on the node ended."""
    with ctx.unit_of_work() as unit:
        lifecycle.finish(unit.tx, attempt.id, message, unit.now, node=node)
        ctx.estimator.done(unit.tx, attempt.job_id, unit.now)


def take_stacks(ctx: Context, node: str, attempt: memory.AttemptIdentity, message: wire.StackDump) -> None:
    """Store what the attempt's processes on the node were doing."""
    with ctx.unit_of_work() as unit:
        stacks.store(unit.tx, attempt.id, node, message, unit.now)
        unit.tell_job(attempt.job_id)


def take_notes(ctx: Context, attempt_id: str, message: wire.JobNotes) -> None:
    """Store what the in-job part tells the job's owner."""
    with ctx.unit_of_work() as unit:
        lifecycle.take_notes(unit.tx, attempt_id, message.notes, unit.now)


def settled(ctx: Context, node: str, attempt_id: str) -> wire.Settled:
    """Record that the service has all that the node had of the attempt; return whether its files are wanted there."""
    with ctx.unit_of_work() as unit:
        return wire.Settled(awaited=lifecycle.settle(unit.tx, attempt_id, node))
