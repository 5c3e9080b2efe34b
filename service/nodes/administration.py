"""Administration of nodes: drain, resume, declare dead. Each is one transaction, with its entry in the audit."""

from collections.abc import Iterator
from contextlib import contextmanager

from service import lifecycle
from service.db.engine import Database
from service.db.unit_of_work import UnitOfWork
from service.errors import ProblemError, not_found
from service.identity import audit
from service.identity.callers import Caller
from service.nodes import listing, maintenance, registration
from torchyard import api
from torchyard.translatable import of_error


def drain(db: Database, caller: Caller, name: str, now: int, *, stop_jobs: bool, message: str = "") -> api.Node:
    """Give the node no new jobs; with `stop_jobs`, also ask its jobs to save their work and wait elsewhere."""
    with _changing(db, name, now) as unit:
        registration.set_draining(unit.tx, name, True, message)
        maintenance.keep_drained(unit.tx, name)
        if stop_jobs:
            registration.stop_jobs(unit.tx, name, caller.name, now)
        audit.record(unit.tx, caller, "node.drain", name, now, stop_jobs=stop_jobs, message=message)
    return listing.get_node(db, caller, name)


def resume(db: Database, caller: Caller, name: str, now: int) -> api.Node:
    """Let the node take jobs again; ``conflict`` in its maintenance."""
    with _changing(db, name, now) as unit:
        maintenance.refuse_resume(unit.tx, name, now)
        registration.set_draining(unit.tx, name, False)
        audit.record(unit.tx, caller, "node.resume", name, now)
    return listing.get_node(db, caller, name)


def return_device(db: Database, caller: Caller, name: str, device: str, now: int) -> api.Node:
    """Return a device to use that is out of use for a fault; ``conflict`` if it is not."""
    with _changing(db, name, now) as unit:
        index = registration.return_device(unit.tx, name, device)
        audit.record(unit.tx, caller, "node.return-device", name, now, device=index)
    return listing.get_node(db, caller, name)


def declare_dead(db: Database, caller: Caller, name: str, now: int) -> api.Node:
    """Declare that a silent node and all that ran on it are gone: its jobs are retried or fail."""
    with _changing(db, name, now) as unit:
        ended = registration.declare_dead(unit.tx, name, caller.name, now)
        audit.record(unit.tx, caller, "node.declare-dead", name, now, jobs=ended)
        if ended:
            unit.nudge(name)
    return listing.get_node(db, caller, name)


@contextmanager
def _changing(db: Database, name: str, now: int) -> Iterator[UnitOfWork]:
    """Open a unit of work that changes a node; refused changes of state are problems."""
    try:
        with db.unit_of_work(now) as unit:
            unit.tell_node(name)
            unit.wake_scheduler()
            yield unit
    except lifecycle.Unknown as error:
        raise not_found("node", name) from error
    except lifecycle.Conflict as error:
        raise ProblemError("conflict", of_error(error)) from error
