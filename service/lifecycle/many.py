"""One change of many waiting jobs: a few statements for any number of them, each with its event."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, update
from sqlalchemy.orm import InstrumentedAttribute

from service.db.chunks import chunks
from service.db.models import Job
from service.db.records.record import Record
from service.db.unit_of_work import unit_of
from service.lifecycle.notes import Note, tell
from service.lifecycle.rows import CHANGED_US, JOBS
from torchyard.ids import JobId
from torchyard.states import JobState

Condition = ColumnElement[bool] | InstrumentedAttribute[bool]


@dataclass(frozen=True, slots=True)
class _ChangedJob(Record):
    """A queued job after its change."""

    id: JobId
    state: JobState
    attempt: int
    last_event: int


def lock_waiting(tx: Connection, *where: Condition) -> list[JobId]:
    """Return ids of queued jobs, locked in the order in which everybody locks them."""
    query = select(Job.id).where(Job.state == JobState.QUEUED, *where).order_by(Job.id)
    return list(tx.scalars(query.with_for_update(key_share=True)))


def change_waiting(tx: Connection, jobs: Sequence[JobId], note: Note, now: int, **values: Any) -> list[JobId]:
    """Change columns of queued jobs; return the ids of those that were (whoever no longer waits is left alone)."""
    changed: list[JobId] = []
    for some in chunks(jobs):
        rows = _ChangedJob.all(
            tx.execute(
                update(JOBS)
                .where(JOBS.c.id.in_(some), JOBS.c.state == JobState.QUEUED)
                .values(version=JOBS.c.version + 1, last_event=JOBS.c.last_event + 1, changed_us=CHANGED_US, **values)
                .returning(JOBS.c.id, JOBS.c.state, JOBS.c.attempt, JOBS.c.last_event),
                {"now": now},
            )
        )
        tell(tx, rows, note, now)
        changed += [row.id for row in rows]
    if changed:
        unit_of(tx).wake_scheduler()
    return changed
