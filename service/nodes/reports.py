"""Reports of a node about itself and its attempts, each report in one unit of work."""

from service import lifecycle
from service.attempts import environments, memory, starts
from service.db.engine import Database
from service.estimation.forecasts import Estimator
from service.nodes import heartbeats, launches, registration
from service.secrets.key_file import KeyFile
from service.telemetry import stacks
from torchyard import wire
from torchyard.ids import AttemptId


def register(db: Database, now: int, message: wire.Register, heartbeat_s: float) -> None:
    """Store a node whose worker has started; `lifecycle.Conflict` if another machine has its name."""
    with db.unit_of_work(now) as unit:
        registration.register(unit.tx, message, unit.now, heartbeat_s)
        unit.tell_node(message.node)
        unit.wake_scheduler()


def heartbeat(db: Database, now: int, node: str, message: wire.Heartbeat) -> wire.Orders:
    """Record a heartbeat; return the node's orders."""
    with db.unit_of_work(now) as unit:
        reply = heartbeats.record(unit.tx, node, message, unit.now)
        unit.tell_node(node)
        if reply.wake:
            unit.wake_scheduler()
    return reply.orders


def launch(db: Database, node: str, attempt_id: AttemptId) -> wire.Launch:
    """Return all that is needed to start an attempt; problems as `launches.launch`."""
    with db.read() as tx:
        return launches.launch(tx, attempt_id, node)


def claim(db: Database, now: int, node: str, attempt_id: AttemptId, message: wire.Claim) -> wire.Launch:
    """Give the attempt's member to the node; return what it starts. `lifecycle.Conflict` if it cannot be had, problems
    as `launches.launch`.
    """
    found = launch(db, node, attempt_id)  # before others wait for the database: it may list thousands of files
    with db.unit_of_work(now) as unit:
        lifecycle.claim(unit.tx, attempt_id, node, message.nonce, unit.now)
    return found


def secrets(
    db: Database, keys: KeyFile, now: int, node: str, attempt_id: AttemptId, message: wire.Claim
) -> wire.Secrets:
    """Return the values of an attempt's secrets; problems as `launches.secrets`."""
    with db.write() as tx:
        return launches.secrets(tx, keys, attempt_id, node, message.nonce, now)


def prepared(db: Database, now: int, node: str, attempt_id: AttemptId, message: wire.Prepared) -> wire.Go:
    """Record that a member on one of several nodes can start; return whether all can."""
    with db.unit_of_work(now) as unit:
        return lifecycle.prepared(unit.tx, attempt_id, node, message, unit.now)


def running(
    db: Database, estimator: Estimator, now: int, attempt: memory.AttemptIdentity, message: wire.Started
) -> None:
    """Record that the job's first instruction ran."""
    with db.unit_of_work(now) as unit:
        lifecycle.mark_running(unit.tx, attempt.id, message.started_us, unit.now)
        starts.take(unit.tx, attempt.id, message.start)
        estimator.begin(unit.tx, attempt.job_id, unit.now)


def result(
    db: Database, estimator: Estimator, now: int, node: str, attempt: memory.AttemptIdentity, message: wire.Result
) -> wire.Settled | None:
    """Record how the attempt's member on the node ended; return as `settled` where it says that nothing is left."""
    ended = message.model_copy(update={"start": None, "settled": False})
    with db.unit_of_work(now) as unit:
        lifecycle.finish(unit.tx, attempt.id, ended, unit.now, node=node)
        starts.take(unit.tx, attempt.id, message.start)
        estimator.done(unit.tx, attempt.job_id, unit.now)
        if not message.settled:
            return None
        return wire.Settled(awaited=lifecycle.settle(unit.tx, attempt.id, node))


def take_start(db: Database, now: int, attempt_id: AttemptId, message: wire.NodeStart) -> None:
    """Store what is known of the attempt's start by now."""
    with db.unit_of_work(now) as unit:
        starts.take(unit.tx, attempt_id, message)


def take_stacks(db: Database, now: int, node: str, attempt: memory.AttemptIdentity, message: wire.StackDump) -> None:
    """Store what the attempt's processes on the node were doing."""
    with db.unit_of_work(now) as unit:
        stacks.store(unit.tx, attempt.id, node, message, unit.now)
        unit.tell_job(attempt.job_id)


def take_notes(db: Database, now: int, attempt_id: AttemptId, message: wire.JobNotes) -> None:
    """Store what the in-job part tells the job's owner."""
    with db.unit_of_work(now) as unit:
        lifecycle.take_notes(unit.tx, attempt_id, message.notes, unit.now)


def take_environment(
    db: Database, now: int, attempt_id: AttemptId, message: wire.EnvironmentReport
) -> wire.EnvironmentAnswer:
    """Store what is installed for the attempt; return whether the content is missing."""
    with db.unit_of_work(now) as unit:
        return wire.EnvironmentAnswer(missing=environments.take(unit.tx, attempt_id, message, unit.now))


def settled(db: Database, now: int, node: str, attempt_id: AttemptId) -> wire.Settled:
    """Record that the service has all that the node had of the attempt; return whether its files are wanted there."""
    with db.unit_of_work(now) as unit:
        return wire.Settled(awaited=lifecycle.settle(unit.tx, attempt_id, node))
