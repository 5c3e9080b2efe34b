"""The queue, and why a job is where it is."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import select

from service import lifecycle, queue
from service.answers import answer, etag, not_modified
from service.auth import context, requires
from service.context import Context
from service.db.models import Job
from service.jobs import versions
from service.problems import ProblemError, field_problem
from torchyard import api

router = APIRouter(tags=["queue"])
Ctx = Annotated[Context, Depends(context)]


@router.get("/queue", response_model=api.Page[api.QueueEntry], dependencies=[requires("read")])
def list_queue(
    request: Request,
    ctx: Ctx,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    cursor: Annotated[str | None, Query(max_length=20)] = None,
) -> Response:
    """Waiting jobs in the order in which they are considered."""
    start = _place(cursor)
    with ctx.db.read() as tx:
        seen = queue.moment_of(tx, ctx.loader, ctx.now_us())
        items = queue.entries(tx, seen, start, limit)
    more = start + limit < len(seen.queue)
    page = api.Page[api.QueueEntry](items=items, next=str(start + limit) if more else None)
    tag = etag(page)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/jobs/{job_id}/why", response_model=api.Why, dependencies=[requires("read")])
def why(job_id: str, request: Request, ctx: Ctx) -> Response:
    """Why the job waits or ended, its place in the queue, and when it starts at the latest if time limits tell."""
    with ctx.db.read() as tx:
        found_id = versions.find(tx, job_id).id
        job = tx.execute(select(Job.__table__).where(Job.id == found_id)).one()
        try:
            found = queue.why(tx, job, ctx.loader, ctx.now_us())
        except lifecycle.Unknown as error:
            raise ProblemError("unavailable", str(error)) from error
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal():
        raise field_problem("cursor", "give the `next` of the page before")
    return int(cursor)
