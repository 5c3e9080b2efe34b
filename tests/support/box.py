"""A box in the database: a user, nodes with devices, and jobs in the queue."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Attempt, Checkpoint, Device, Event, Job, Node, Project, User
from service.db.unit_of_work import unit_of
from service.scheduler.model.nodes import Placement
from torchyard import wire
from torchyard.ids import JobId, new_id, now_us
from torchyard.spec import PRIORITY_RANK, JobSpec
from torchyard.states import AttemptState, JobState
from torchyard.wire import Result, ResultKind

NOW = 1_700_000_000_000_000
GIB = 2**30


def add_people(db: Database) -> None:
    """The user `ada` and the project `default`."""
    add_ada(db)
    with db.write() as tx:
        tx.execute(insert(Project).values(name="default", created_us=NOW))


def add_ada(db: Database) -> None:
    """The user `ada`, where the project is there already."""
    add_user(db, "ada")


def add_user(db: Database, name: str) -> None:
    """A user, whose id is `user-` and the name."""
    with db.write() as tx:
        tx.execute(insert(User).values(id=f"user-{name}", name=name, created_us=NOW))


def add_node(db: Database, name: str = "box", devices: int = 2, **values: Any) -> list[str]:
    """A node that was just seen, with GPUs; returns their UUIDs."""
    defaults = {
        "node_id": f"machine-{name}",
        "home_id": f"home-{name}",
        "boot_id": "boot-1",
        "pid_namespace": "pid-1",
        "hostname": name,
        "version": "0.1.0",
        "runs_as_root": False,
        "cpus": 64,
        "memory": 256 * GIB,
        "disk_free": 100 * GIB,
        "last_seen_us": NOW,
        "registered_us": NOW,
        "capabilities": [each for each in wire.Capability if each is not wire.Capability.UNIX_ACCOUNTS],
    }
    uuids = [f"{name}-gpu-{index}" for index in range(devices)]
    with db.write() as tx:
        tx.execute(insert(Node).values(name=name, **(defaults | values)))
        for index, uuid in enumerate(uuids):
            tx.execute(
                insert(Device).values(node=name, uuid=uuid, index=index, kind="gpu", name="A100", memory=80 * GIB)
            )
    return uuids


def add_job(db: Database, gpus: int = 1, **spec: Any) -> str:
    """A queued job of `ada`; returns its id."""
    with db.write() as tx:
        return insert_job(tx, gpus, **spec)


def insert_job(tx: Connection, gpus: int = 1, resources: dict[str, Any] | None = None, **fields: Any) -> str:
    """As `add_job`, inside a transaction."""
    whole = JobSpec.model_validate(
        {
            "command": ["true"],
            "launcher": "none",
            "resources": {"gpus": gpus, **(resources or {})},
            **fields,
        }
    )
    job_id = new_id("job")
    number = (tx.scalar(select(func.max(Job.number))) or 0) + 1
    tx.execute(
        insert(Job).values(
            id=job_id,
            number=number,
            name=whole.name,
            user_id="user-ada",
            project="default",
            state=JobState.QUEUED,
            priority=PRIORITY_RANK[whole.priority],
            spec=whole.model_dump(mode="json"),
            tags=list(whole.tags),
            created_us=NOW,
            queued_us=NOW,
            changed_us=now_us(),  # also of services that run on the real clock
            eligible_us=NOW,
        )
    )
    lifecycle.insert_event(tx, job_id, "submitted", "submitted", actor="ada", now=NOW)
    return job_id


def add_ended(db: Database, gpus: int = 1, *, came_us: int, ran_s: int, user: str = "user-ada", **spec: Any) -> str:
    """A job that came at that moment, ran for so long at once, and has succeeded; returns its attempt's id."""
    attempt, ended_us = new_id("att"), came_us + ran_s * 1_000_000
    times = {"created_us": came_us, "started_us": came_us, "ended_us": ended_us}
    with db.write() as tx:
        job = insert_job(tx, gpus, **spec)
        own = {"state": JobState.SUCCEEDED, "user_id": user, "attempt": 1, **times}
        tx.execute(update(Job).where(Job.id == job).values(own))
        tx.execute(insert(Attempt).values(id=attempt, job_id=job, number=1, state=AttemptState.SUCCEEDED, **times))
    return attempt


def assign(db: Database, job_id: str, uuids: Iterable[str], node: str = "box") -> str:
    """Gives the job devices of a node; returns the attempt's id."""
    return spread(db, job_id, {node: uuids})


def spread(db: Database, job_id: str, uuids: Mapping[str, Iterable[str]]) -> str:
    """Gives the job devices of several nodes; returns the attempt's id."""
    places = [Placement(node=node, uuids=tuple(given)) for node, given in uuids.items()]
    with db.write() as tx:
        return lifecycle.assign(tx, job_id, places, NOW)


def start(db: Database, job_id: str, uuids: Iterable[str], node: str = "box", nonce: str = "nonce") -> str:
    """Brings a queued job to RUNNING; returns the attempt's id."""
    attempt_id = assign(db, job_id, uuids, node)
    with db.write() as tx:
        lifecycle.claim(tx, attempt_id, node, nonce, NOW + 1)
        lifecycle.mark_running(tx, attempt_id, NOW + 2)
    return attempt_id


def finish(db: Database, attempt_id: str, **values: Any) -> JobState:
    """Ends an attempt; by default its process exited with 0."""
    fields: dict[str, Any] = {"kind": ResultKind.EXITED, "started_us": NOW + 2, "ended_us": NOW + 3}
    if not values.keys() & {"kind", "exit_code", "signal"}:
        fields["exit_code"] = 0
    with db.write() as tx:
        return lifecycle.finish(tx, attempt_id, Result(**(fields | values)), NOW + 4)


def add_checkpoint(db: Database, attempt_id: str, step: int, state: str = "stored", at_us: int = NOW) -> str:
    """A checkpoint of an attempt, as the node has brought it; returns its id."""
    checkpoint_id = new_id("ckpt")
    with db.write() as tx:
        job_id = tx.scalar(select(Attempt.job_id).where(Attempt.id == attempt_id)) or ""
        tx.execute(
            insert(Checkpoint).values(
                id=checkpoint_id,
                job_id=job_id,
                attempt_id=attempt_id,
                name=f"step-{step:09}",
                step=step,
                state=state,
                metrics={},
                size=1,
                created_us=at_us,
            )
        )
        unit_of(tx).count_stored(JobId(job_id), 1 if state == "stored" else 0)
        lifecycle.insert_event(tx, job_id, "checkpoint", f"checkpoint of step {step} {state}", now=at_us)
    return checkpoint_id


def events(db: Database, job_id: str) -> list[tuple[str, str]]:
    """Kind and message of everything that happened to the job."""
    with db.read() as tx:
        rows = tx.execute(select(Event.kind, Event.message).where(Event.job_id == job_id).order_by(Event.seq))
        return [(row.kind, row.message) for row in rows]


def told(db: Database, job_id: str, kind: str) -> dict[str, Any]:
    """What the job's newest event of a kind holds."""
    newest = select(Event.data).where(Event.job_id == job_id, Event.kind == kind).order_by(Event.seq.desc()).limit(1)
    with db.read() as tx:
        return dict(tx.scalars(newest).one())


def job_row(db: Database, job_id: str) -> Any:
    """The job as it is stored."""
    with db.read() as tx:
        return tx.execute(select(Job.__table__).where(Job.id == job_id)).one()


def attempt_row(db: Database, attempt_id: str) -> Any:
    """The attempt as it is stored."""
    with db.read() as tx:
        return tx.execute(select(Attempt.__table__).where(Attempt.id == attempt_id)).one()


def node_row(db: Database, name: str) -> Any:
    """The node as it is stored."""
    with db.read() as tx:
        return tx.execute(select(Node.__table__).where(Node.name == name)).one()
