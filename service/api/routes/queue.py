"""``/queue`` and ``/jobs/{id}/why``: waiting jobs, and the reason why one waits."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.errors import field_problem
from service.estimation.calibration import ForecastAccuracy
from service.identity.callers import Caller
from service.infra.etags import etag
from service.infra.times import moment
from service.jobs import versions
from service.queue import overview
from torchyard import api

router = api_router("queue")
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
    with overview.queue_snapshot(ctx) as (tx, seen):
        items = overview.entries(tx, seen, start, limit)
    more = start + limit < len(seen.queue)
    page = api.Page[api.QueueEntry](items=items, next=str(start + limit) if more else None)
    tag = etag(page)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/queue/calibration", response_model=api.Calibration, dependencies=[requires("read")])
def calibration(request: Request, ctx: Ctx) -> Response:
    """What estimates of running times turned out to be worth, by where they came from."""
    with ctx.db.read() as tx:
        accuracy = ctx.estimator.accuracy(tx, ctx.now_us())
    found = api.Calibration(sources=[_source(each) for each in accuracy])
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


def _source(accuracy: ForecastAccuracy) -> api.SourceCalibration:
    p10, p50, p90 = accuracy.shares
    return api.SourceCalibration(
        source=accuracy.basis,
        n=accuracy.count,
        p10=p10,
        p50=p50,
        p90=p90,
        median_relative_error=accuracy.error,
        since=moment(accuracy.since_us),
    )


@router.get("/jobs/{job_id}/why", response_model=api.Why)
def why(job_id: str, request: Request, ctx: Ctx, caller: Annotated[Caller, requires("read")]) -> Response:
    """Why the job waits, runs where it does, or ended; its place in the queue, when it is expected to start, and what
    would start it now.
    """
    with ctx.db.read() as tx:
        found_id = versions.find(tx, job_id).id
    found = overview.why(ctx, found_id, caller)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal():
        raise field_problem("cursor", "give the `next` of the page before")
    return int(cursor)
