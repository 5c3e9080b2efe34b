"""Lists of waiting jobs in the order of the queue."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Select, select

from service.db.engine import Database
from service.db.models import Job, User
from service.db.number_lists import one_of
from service.db.records.jobs import JobVersion
from service.identity.callers import Caller
from service.infra.etags import Tagged, names
from service.jobs import find, present, versions
from service.jobs.versions import COLUMNS
from service.queue.snapshot import QueueSnapshot, queue_snapshot
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
        found = _passing(tx, caller, filters, seen, after, span)
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
    tx: Connection, caller: Caller, filters: find.Filters, seen: QueueSnapshot, after: int, span: find.Span
) -> list[Placed]:
    """Return the span's jobs and the one after them, in the order of the queue."""
    if filters.state and JobState.QUEUED not in filters.state:
        return []
    filters = replace(filters, state=())
    if caller.admin and filters == find.Filters():
        first = after + span.offset
        return list(enumerate(seen.queue[first : first + span.limit + 1], first + 1))
    if caller.admin and _beside_owner(filters) == find.Filters():
        return list(islice(_owned(tx, filters, seen, after), span.offset, span.offset + span.limit + 1))
    filters = find.narrowed(tx, caller, replace(filters, state=[JobState.QUEUED]))
    if filters.among is None:
        return _chunk_by_chunk(tx, caller, filters, seen, after, span)
    # First those that wait, from an index: most of these jobs have ended, and their rows are read from the disk.
    waits = select(Job.number).where(Job.state == JobState.QUEUED, one_of(Job.number, filters.among))
    few: Select[Any] = select(Job.id).where(one_of(Job.number, tx.scalars(waits).all()))
    places = seen.order.places
    passing = sorted((places[job], job) for job in tx.scalars(find.filtered(few, caller, filters)) if job in places)
    return [placed for placed in passing if placed[0] > after][span.offset :][: span.limit + 1]


def _chunk_by_chunk(
    tx: Connection, caller: Caller, filters: find.Filters, seen: QueueSnapshot, after: int, span: find.Span
) -> list[Placed]:
    """Return them where many pass: only the next part of the queue is looked at."""
    found: list[Placed] = []
    owned, others = _owned(tx, filters, seen, after), _beside_owner(filters)
    while chunk := list(islice(owned, CHUNK)):
        query: Select[Any] = select(Job.id).where(Job.id.in_([job for _, job in chunk]))
        passing = set(tx.scalars(find.filtered(query, caller, others)))
        found += [placed for placed in chunk if placed[1] in passing]
        if len(found) > span.offset + span.limit:
            break
    return found[span.offset :][: span.limit + 1]


def _beside_owner(filters: find.Filters) -> find.Filters:
    return replace(filters, user=None, project=None)


def _owned(tx: Connection, filters: find.Filters, seen: QueueSnapshot, after: int) -> Iterator[Placed]:
    """Return the jobs behind a place, of the user and project asked for, with their places: the scheduler has these."""
    waiting = seen.state.waiting
    placed: Iterator[Placed] = enumerate(islice(seen.queue, after, None), after + 1)
    if filters.user:
        user = tx.scalar(select(User.id).where(User.name == filters.user))
        placed = (each for each in placed if waiting[each[1]].user == user)
    if filters.project:
        project = filters.project
        placed = (each for each in placed if waiting[each[1]].project == project)
    return placed


def _versions(tx: Connection, ids: Sequence[JobId]) -> list[JobVersion]:
    if not ids:
        return []
    by_id = {row.id: row for row in JobVersion.all(tx.execute(select(*COLUMNS).where(Job.id.in_(ids))))}
    return [by_id[job] for job in ids]
