"""Queries of jobs for the API: each reads in one transaction of its own.

A job is named by its id or number; ``not-found`` for one that is unknown or that the caller may not read. `known` is
the client's If-None-Match.
"""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import select

from service.attempts import starts
from service.db.engine import Database
from service.db.models import Job
from service.db.records.jobs import JobOwner, JobVersion
from service.errors import not_found
from service.identity.callers import Caller
from service.identity.visibility import readable
from service.infra.etags import Tagged, etag, names
from service.jobs import facets as job_facets
from service.jobs import find, ordering, present, versions
from service.jobs.written import WrittenJobs
from torchyard import api
from torchyard.ids import JobId

_OWNERS = select(*JobOwner.columns(Job))


def find_owner(db: Database, caller: Caller, ref: str) -> JobOwner:
    """Return the id of a job, and what decides who may read it."""
    with db.read() as tx:
        return versions.owner(tx, ref, caller)


def find_ids(db: Database, caller: Caller, refs: Iterable[str]) -> list[JobId]:
    """Return the ids of jobs, in one transaction; ``not-found`` if the caller may not read one of them."""
    with db.read() as tx:
        return [versions.owner(tx, ref, caller).id for ref in refs]


def is_over(db: Database, caller: Caller, ref: str) -> bool:
    """Return true once the job has ended."""
    with db.read() as tx:
        return versions.find(tx, ref, caller).is_over


def job(db: Database, written: WrittenJobs, caller: Caller, ref: str) -> Tagged[bytes]:
    """Return a job as JSON."""
    with db.read() as tx:
        found = versions.find(tx, ref, caller)
        return Tagged(versions.tag(found, caller), written.of(tx, [found], caller)[0])


def changed(db: Database, caller: Caller, version: JobVersion) -> Tagged[api.Job]:
    """Return a job after a change, with the ETag of the version that the change has made."""
    with db.read() as tx:
        return Tagged(versions.tag(version, caller), present.jobs(tx, [version.id], caller)[0])


def versions_of(db: Database, caller: Caller, job_ids: Sequence[JobId]) -> list[dict[str, str | int]]:
    """Return id and version of jobs by id, as the stream of changes tells them; of the caller's alone."""
    query = select(Job.id, Job.version).where(Job.id.in_(job_ids), readable(caller, Job)).order_by(Job.number)
    with db.read() as tx:
        return [{"id": row.id, "version": row.version} for row in tx.execute(query)]


def owner(db: Database, job_id: JobId) -> JobOwner:
    """Return what decides who may read a job, by its id; who asks is decided later."""
    with db.read() as tx:
        found = JobOwner.first(tx.execute(_OWNERS.where(Job.id == job_id)))
    if found is None:
        raise not_found("job", job_id)
    return found


def with_owners(db: Database, job_ids: Sequence[JobId]) -> list[tuple[JobOwner, api.Job]]:
    """Return jobs by id, each after what decides who may read it; unknown ones are left out."""
    with db.read() as tx:
        owners = {found.id: found for found in JobOwner.all(tx.execute(_OWNERS.where(Job.id.in_(job_ids))))}
        return [(owners[JobId(job.id)], job) for job in present.jobs(tx, list(owners), None)]


def page(db: Database, written: WrittenJobs, caller: Caller, filters: find.Filters, span: find.Span) -> Tagged[bytes]:
    """Return a part of the list of jobs that the caller may read, as JSON."""
    with db.read() as tx:
        rows, following = find.page(tx, caller, filters, span)
        items = b",".join(written.of(tx, rows, caller))
    current = versions.tag_of_list(rows, following, caller)
    return Tagged(current, b'{"items":[%b],"next":%b}' % (items, json.dumps(following).encode()))


def ordered_page(
    db: Database,
    caller: Caller,
    filters: find.Filters,
    span: find.Span,
    order: ordering.ListOrder,
    now_us: int,
    known: str | None,
) -> Tagged[api.Page[api.Job]]:
    """Return a part of the list of jobs in the order of a column."""
    with db.read() as tx:
        rows, following = ordering.page(tx, caller, filters, span, order, now_us)
        current = versions.tag_of_list(rows, following, caller)
        if names(known, current):
            return Tagged(current, None)
        items = present.jobs(tx, [row.id for row in rows], caller)
        return Tagged(current, api.Page[api.Job](items=items, next=following))


def counts(db: Database, caller: Caller, filters: find.Filters, most: int) -> find.Counts:
    """Count the jobs of a list, by state, up to `most` of each."""
    with db.read() as tx:
        return find.counts(tx, caller, filters, most)


def facets(db: Database, caller: Caller, filters: find.Filters, by: api.FacetKind) -> list[api.Facet]:
    """Count the jobs of a list by whose, what, or which sweep's they are, the largest first."""
    with db.read() as tx:
        return job_facets.load(tx, caller, filters, by)


def events(
    db: Database, caller: Caller, ref: str, cursor: str | None, limit: int, known: str | None
) -> Tagged[api.Page[api.Event]]:
    """Return a page of a job's events, the oldest first."""
    with db.read() as tx:
        found = versions.find(tx, ref, caller)
        current = etag(found.id, found.last_event, cursor, limit)
        if names(known, current):
            return Tagged(current, None)
        items = present.events(tx, found.id, find.position(cursor or "0"), limit + 1)
    following = str(items[limit - 1].seq) if len(items) > limit else None
    return Tagged(current, api.Page[api.Event](items=items[:limit], next=following))


def attempts(db: Database, caller: Caller, ref: str, known: str | None) -> Tagged[list[api.Attempt]]:
    """Return a job's attempts, the first one first."""
    with db.read() as tx:
        found = versions.find(tx, ref, caller)
        current = versions.tag_of_attempts(tx, found.id)
        return Tagged(current, None if names(known, current) else present.attempts(tx, found.id))


def timing(db: Database, caller: Caller, ref: str) -> list[api.StartTiming]:
    """Return the starts of a job's attempts, hop by hop, the first one first."""
    with db.read() as tx:
        return starts.of_job(tx, versions.find(tx, ref, caller).id)
