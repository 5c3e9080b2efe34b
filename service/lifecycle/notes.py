"""The events that go with changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import Connection, Row, Table, insert

from service.db.models import Event
from service.db.unit_of_work import unit_of

_TELL = insert(cast("Table", Event.__table__))


@dataclass(frozen=True, kw_only=True)
class Note:
    """The event that goes with a change; `kind` is a short slug, `message` a sentence for a person."""

    kind: str
    message: str
    actor: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def tell(tx: Connection, jobs: Iterable[Row[Any]], note: Note, now: int, attempt: int | None = None) -> None:
    """Store the event of each job, whose rows (with `id`, `state`, `attempt`) have counted it in `last_event`."""
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
        for job in jobs
    ]
    if events:
        tx.execute(_TELL, events)
    for event in events:
        unit_of(tx).tell_job(event["job_id"])
