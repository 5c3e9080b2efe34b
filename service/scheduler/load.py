"""From the database to the policy's plain data."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, select

from service import lifecycle
from service.db.models import Allocation, Attempt, Device, Job, Member, Node
from service.scheduler.boxes import Box, Closed, Running, Shape, Slot, Waiting
from torchyard.spec import JobSpec
from torchyard.states import JobState

#: A job waits at most this long for its last attempt's checkpoints to be stored.
SAVING_US = 600 * 1_000_000
#: Shapes kept of jobs that are over, before they are dropped.
SPARE_SHAPES = 10_000


def shape_of(spec: JobSpec) -> Shape:
    """What the job asks of a node. Without GPUs it counts as at least one core, so that such jobs have a bound too."""
    resources = spec.resources
    return Shape(
        gpus=resources.gpus,
        gpu_memory_min=resources.gpu_memory_min or 0,
        cpus=resources.cpus or (0 if resources.gpus else 1),
        memory=resources.memory or 0,
    )


class Loader:
    """Reads queue and boxes; keeps what it parsed of the specs, whose resources never change."""

    def __init__(self, disk_floor: int) -> None:
        self._disk_floor = disk_floor
        self._shapes: dict[str, Shape] = {}

    def queue(self, tx: Connection, now: int) -> list[Waiting]:
        """The jobs that wait, in the order of the queue."""
        query = (
            select(
                Job.id,
                Job.number,
                Job.priority,
                Job.held,
                Job.attempt,
                Job.spec["time_limit"].as_integer().label("limit"),
            )
            .where(Job.state == JobState.QUEUED)
            .order_by(Job.priority.desc(), Job.number)
        )
        rows = tx.execute(query).all()
        if not rows:
            return []
        shapes = self._load_shapes(tx, [row.id for row in rows])
        saving = _saving(tx, now) if any(row.attempt for row in rows) else frozenset()
        return [
            Waiting(
                job=row.id,
                number=row.number,
                priority=row.priority,
                shape=shapes[row.id],
                held=row.held,
                limit_us=row.limit * 1_000_000 if row.limit else None,
                saving=row.id in saving,
            )
            for row in rows
        ]

    def boxes(self, tx: Connection) -> list[Box]:
        """The nodes, what they have, and who holds it."""
        nodes = tx.execute(select(Node.__table__).order_by(Node.name)).all()
        slots = _slots(tx)
        running = self._running(tx)
        return [
            Box(
                node=node.name,
                slots=tuple(slots.get(node.name, ())),
                cpus=node.cpus,
                memory=node.memory,
                running=tuple(running.get(node.name, ())),
                closed=self._closed(node),
            )
            for node in nodes
        ]

    def _closed(self, node: Row[Any]) -> Closed | None:
        if node.draining:
            return Closed.DRAINING
        if node.unreachable or node.last_seen_us is None:
            return Closed.UNREACHABLE
        return Closed.DISK_FLOOR if node.disk_free < self._disk_floor else None

    def _running(self, tx: Connection) -> dict[str, list[Running]]:
        query = (
            select(Attempt.id, Attempt.started_us, Attempt.job_id, Member.node, Job.spec["time_limit"].as_integer())
            .join(Member, Member.attempt_id == Attempt.id)
            .join(Job, Job.id == Attempt.job_id)
            .where(Attempt.state.in_(lifecycle.LIVE))
            .order_by(Attempt.id)
        )
        rows = tx.execute(query).all()
        held = _held(tx) if rows else {}
        shapes = self._load_shapes(tx, [row.job_id for row in rows])
        running: dict[str, list[Running]] = {}
        for attempt_id, started_us, job_id, node, limit in rows:
            part = Running(
                job=job_id,
                shape=shapes[job_id],
                uuids=tuple(held.get((attempt_id, node), ())),
                ends_us=started_us + limit * 1_000_000 if started_us and limit else None,
            )
            running.setdefault(node, []).append(part)
        return running

    def _load_shapes(self, tx: Connection, jobs: list[str]) -> dict[str, Shape]:
        missing = [job for job in jobs if job not in self._shapes]
        if missing and len(self._shapes) > len(jobs) + SPARE_SHAPES:
            self._shapes, missing = {}, jobs
        for some in _chunks(missing, 500):
            for job_id, spec in tx.execute(select(Job.id, Job.spec).where(Job.id.in_(some))):
                self._shapes[job_id] = shape_of(JobSpec.model_validate(spec))
        return self._shapes


def _chunks(items: list[str], size: int) -> Iterable[list[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _slots(tx: Connection) -> dict[str, list[Slot]]:
    slots: dict[str, list[Slot]] = {}
    query = select(Device.__table__).where(Device.present).order_by(Device.node, Device.index)
    for row in tx.execute(query):
        slot = Slot(uuid=row.uuid, index=row._mapping["index"], memory=row.memory, kind=row.kind, unusable=row.unusable)
        slots.setdefault(row.node, []).append(slot)
    return slots


def _held(tx: Connection) -> dict[tuple[str, str], list[str]]:
    held: dict[tuple[str, str], list[str]] = {}
    query = select(Allocation.attempt_id, Allocation.node, Allocation.uuid).where(Allocation.live)
    for attempt_id, node, uuid in tx.execute(query):
        held.setdefault((attempt_id, node), []).append(uuid)
    return held


def _saving(tx: Connection, now: int) -> frozenset[str]:
    """Queued jobs whose last attempt's checkpoints are still on the way from a node that is heard."""
    query = (
        select(Job.id)
        .join(Attempt, (Attempt.job_id == Job.id) & (Attempt.number == Job.attempt))
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Node, Node.name == Member.node)
        .where(
            Job.state == JobState.QUEUED,
            Attempt.claimed_us.is_not(None),
            Attempt.ended_us > now - SAVING_US,
            ~Member.settled,
            ~Node.unreachable,
        )
    )
    return frozenset(tx.scalars(query))
