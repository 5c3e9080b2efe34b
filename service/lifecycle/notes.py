"""The events that go with changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from sqlalchemy import Connection, Table, insert

from service.db.models import Event
from service.db.unit_of_work import unit_of
from torchyard.ids import JobId
from torchyard.states import JobState

_TELL = insert(cast("Table", Event.__table__))


@dataclass(frozen=True, kw_only=True)
class Note:
    """The event that goes with a change; `kind` is a short slug, `message` a sentence for a person."""

    kind: str
    message: str
    actor: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


class CountedJob(Protocol):
    """Columns of a job that its event takes over."""

    @property
    def id(self) -> JobId: ...
    @property
    def state(self) -> JobState: ...
    @property
    def attempt(self) -> int: ...
    @property
    def last_event(self) -> int: ...


def tell(tx: Connection, jobs: Iterable[CountedJob], note: Note, now: int, attempt: int | None = None) -> None:
    """Store the event of each job, which has counted it in `last_event`."""
    counted = list(jobs)
    events = [
        {
            "job_id": job.id,
            "seq": job.last_event,
            "at_us": now,
            "kind": note.kind,
            "state": job.state,
            "attempt": attempt if attempt is not None else job.attempt or None,
            "actor": note.actor,
            "message": note.message,
            "data": note.data,
        }
        for job in counted
    ]
    if events:
        tx.execute(_TELL, events)
    for job in counted:
        unit_of(tx).tell_job(job.id)
