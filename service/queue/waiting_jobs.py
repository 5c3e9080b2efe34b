"""Lists of waiting jobs in the order of the queue."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, select

from service.db.engine import Database
from service.db.models import Job
from service.db.records.jobs import JobVersion
from service.identity.callers import Caller
from service.infra.etags import Tagged, names
from service.jobs import find, present, versions
from service.jobs.versions import COLUMNS
from service.queue.snapshot import queue_snapshot
from service.scheduler_cache.load import Loader
from torchyard import api
from torchyard.ids import JobId

#: Jobs of the queue that are looked at in one query.
CHUNK = 1_000


def page(
    db: Database, loader: Loader, now: int, caller: Caller, filters: find.Filters, span: find.Span, known: str | None
) -> Tagged[api.Page[api.Job]]:
    """Return the waiting jobs that pass, by their places; a cursor is the last job's place."""
    after = 0 if span.cursor is None else find.position(span.cursor)
    with queue_snapshot(db, loader, now) as (tx, seen):
        places = {job: place for place, job in enumerate(seen.queue, 1)}
        rows = _passing(tx, caller, filters, seen.queue[after:], span)
        more = len(rows) > span.limit
        rows = rows[: span.limit]
        following = str(places[rows[-1].id]) if more else None
        current = versions.tag_of_list(rows, f"{following} {[places[row.id] for row in rows]}", caller)
        if names(known, current):
            return Tagged(current, None)
        jobs = present.jobs(tx, [row.id for row in rows], caller)
    items = [job.model_copy(update={"place": places[JobId(job.id)]}) for job in jobs]
    return Tagged(current, api.Page[api.Job](items=items, next=following))


def _passing(
    tx: Connection, caller: Caller, filters: find.Filters, queue: Sequence[JobId], span: find.Span
) -> list[JobVersion]:
    """Return the span's jobs and the one after them, in the order of the queue."""
    found: list[JobVersion] = []
    skipped = 0
    for first in range(0, len(queue), CHUNK):
        ids = _of_chunk(tx, caller, filters, queue[first : first + CHUNK])
        wanted = ids[max(0, span.offset - skipped) :][: span.limit + 1 - len(found)]
        skipped += min(len(ids), max(0, span.offset - skipped))
        found += _versions(tx, wanted)
        if len(found) > span.limit:
            break
    return found


def _of_chunk(tx: Connection, caller: Caller, filters: find.Filters, chunk: Sequence[JobId]) -> list[JobId]:
    query: Select[Any] = select(Job.id).where(Job.id.in_(chunk))
    passing = set(tx.scalars(find.filtered(query, caller, filters)))
    return [job for job in chunk if job in passing]


def _versions(tx: Connection, ids: Sequence[JobId]) -> list[JobVersion]:
    if not ids:
        return []
    by_id = {row.id: row for row in JobVersion.all(tx.execute(select(*COLUMNS).where(Job.id.in_(ids))))}
    return [by_id[job] for job in ids]
