"""From the database to the policy's plain data."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, select

from service import lifecycle
from service.db.models import Allocation, Attempt, Device, Job, Member, Node
from service.scheduler.boxes import Box, Closed, Running, Shape, Slot, Waiting
from service.scheduler.policy import order
from torchyard.spec import Resources
from torchyard.states import JobState

#: A job waits at most this long for its last attempt's checkpoints to be stored.
SAVING_US = 600 * 1_000_000
#: Jobs remembered beyond twice those that wait, before all are forgotten.
SPARE = 10_000


def shape_of(resources: Resources) -> Shape:
    """What a job asks of a node. Without GPUs it counts as at least one core, so that such jobs have a bound too."""
    return Shape(
        gpus=resources.gpus,
        gpu_memory_min=resources.gpu_memory_min or 0,
        cpus=resources.cpus or (0 if resources.gpus else 1),
        memory=resources.memory or 0,
    )


class Loader:
    """Reads queue and boxes; safe from many threads.

    What was made of a job is kept while its version stays the same, so that a long queue costs little to read again.
    """

    def __init__(self, disk_floor: int) -> None:
        self._disk_floor = disk_floor
        self._known: dict[str, _Known] = {}

    def queue(self, tx: Connection, now: int) -> list[Waiting]:
        """The jobs that wait, in the order of the queue."""
        query = select(Job.id, Job.version, Job.attempt).where(Job.state == JobState.QUEUED)
        rows = tx.execute(query).all()
        if len(self._known) > 2 * len(rows) + SPARE:
            self._known = {}
        known = self._load(tx, [(job, version) for job, version, _ in rows])
        queue = [known[job].waiting for job, _, _ in rows if job in known]
        if any(attempt for _, _, attempt in rows):
            saving = _saving(tx, now)
            queue = [replace(w, saving=True) if w.job in saving else w for w in queue]
        return sorted(queue, key=order)

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
            select(Attempt.id, Attempt.started_us, Attempt.job_id, Job.version, Member.node)
            .join(Member, Member.attempt_id == Attempt.id)
            .join(Job, Job.id == Attempt.job_id)
            .where(Attempt.state.in_(lifecycle.LIVE), Member.ended_us.is_(None))
            .order_by(Attempt.id)
        )
        rows = tx.execute(query).all()
        held = _held(tx) if rows else {}
        known = self._load(tx, [(job, version) for _, _, job, version, _ in rows])
        running: dict[str, list[Running]] = {}
        for attempt_id, started_us, job_id, _, node in rows:
            waiting = known[job_id].waiting
            part = Running(
                job=job_id,
                shape=waiting.shape,
                uuids=tuple(held.get((attempt_id, node), ())),
                ends_us=started_us + waiting.limit_us if started_us and waiting.limit_us else None,
            )
            running.setdefault(node, []).append(part)
        return running

    def _load(self, tx: Connection, jobs: list[tuple[str, int]]) -> dict[str, "_Known"]:
        known = self._known
        missing = [job for job, version in jobs if job not in known or known[job].version != version]
        for some in _chunks(missing, 500):
            for row in tx.execute(select(Job.__table__).where(Job.id.in_(some))):
                known[row.id] = _Known(row.version, _waiting(row))
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    version: int
    waiting: Waiting


def _waiting(row: Row[Any]) -> Waiting:
    # Stored specs were checked when they came. One that today's rules would refuse must not stop the whole queue.
    resources = Resources.model_construct(**row.spec.get("resources", {}))
    limit = row.spec.get("time_limit")
    return Waiting(
        job=row.id,
        number=row.number,
        priority=row.priority,
        shape=shape_of(resources),
        nodes=resources.nodes,
        held=row.held,
        limit_us=None if limit is None else limit * 1_000_000,
    )


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
