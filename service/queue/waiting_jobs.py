"""Lists of waiting jobs in the order of the queue."""

from collections.abc import Sequence
from dataclasses import replace
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
from torchyard.states import JobState

#: Jobs of the queue that are looked at in one query.
CHUNK = 1_000
#: A job of the queue and its place, from 1.
Placed = tuple[int, JobId]


def page(
    db: Database, loader: Loader, now: int, caller: Caller, filters: find.Filters, span: find.Span, known: str | None
) -> Tagged[api.Page[api.Job]]:
    """Return the waiting jobs that pass, by their places; a cursor is the last job's place."""
    after = 0 if span.cursor is None else find.position(span.cursor)
    with queue_snapshot(db, loader, now) as (tx, seen):
        found = _passing(tx, caller, filters, seen.queue, after, span)
        more = len(found) > span.limit
        places = {job: place for place, job in found[: span.limit]}
        rows = _versions(tx, list(places))
        following = str(found[span.limit - 1][0]) if more else None
        current = versions.tag_of_list(rows, f"{following} {list(places.values())}", caller)
        if names(known, current):
            return Tagged(current, None)
        jobs = present.jobs(tx, [row.id for row in rows], caller)
    items = [job.model_copy(update={"place": places[JobId(job.id)]}) for job in jobs]
    return Tagged(current, api.Page[api.Job](items=items, next=following))


def _passing(
    tx: Connection, caller: Caller, filters: find.Filters, queue: Sequence[JobId], after: int, span: find.Span
) -> list[Placed]:
    """Return the span's jobs and the one after them, in the order of the queue."""
    if filters.state and JobState.QUEUED not in filters.state:
        return []
    filters = replace(filters, state=())
    if caller.admin and filters == find.Filters():
        first = after + span.offset
        return list(enumerate(queue[first : first + span.limit + 1], first + 1))
    filters = find.narrowed(tx, caller, replace(filters, state=[JobState.QUEUED]))
    if filters.among is None:
        return _chunk_by_chunk(tx, caller, filters, queue, after, span)
    few: Select[Any] = select(Job.id).where(Job.number.in_(filters.among))
    passing = set(tx.scalars(find.filtered(few, caller, filters)))
    placed = [(place, job) for place, job in enumerate(queue, 1) if job in passing and place > after]
    return placed[span.offset :][: span.limit + 1]


def _chunk_by_chunk(
    tx: Connection, caller: Caller, filters: find.Filters, queue: Sequence[JobId], after: int, span: find.Span
) -> list[Placed]:
    """Return them where many pass: only the next part of the queue is looked at."""
    found: list[Placed] = []
    for first in range(after, len(queue), CHUNK):
        chunk = queue[first : first + CHUNK]
        query: Select[Any] = select(Job.id).where(Job.id.in_(chunk))
        passing = set(tx.scalars(find.filtered(query, caller, filters)))
        found += [(place, job) for place, job in enumerate(chunk, first + 1) if job in passing]
        if len(found) > span.offset + span.limit:
            break
    return found[span.offset :][: span.limit + 1]


def _versions(tx: Connection, ids: Sequence[JobId]) -> list[JobVersion]:
    if not ids:
        return []
    by_id = {row.id: row for row in JobVersion.all(tx.execute(select(*COLUMNS).where(Job.id.in_(ids))))}
    return [by_id[job] for job in ids]
