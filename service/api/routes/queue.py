"""``/queue`` and ``/jobs/{id}/why``: waiting jobs, and the reason why one waits."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.routes.filters import CURSOR, LIMIT
from service.api.routes.refs import JobRef, Reader
from service.api.routes.router import api_router
from service.context import Context
from service.errors import field_problem
from service.infra.etags import etag
from service.queue import attention, overview
from service.queue import calibration as accuracy
from torchyard import api
from torchyard.translatable import TranslatableText

router = api_router("queue")
Ctx = Annotated[Context, Depends(context)]


@router.get("/queue", response_model=api.Page[api.QueueEntry])
def list_queue(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    limit: Annotated[int, Query(ge=1, le=1000, description=LIMIT)] = 200,
    cursor: Annotated[str | None, Query(max_length=20, description=CURSOR)] = None,
) -> Response:
    """List waiting jobs in the order in which they are considered. All, without the names of those not to be read."""
    start = _place(cursor)
    page = overview.page(ctx.db, ctx.loader, ctx.now_us(), caller, start, limit)
    tag = etag(page)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/attention", response_model=list[api.Attention])
def list_attention(request: Request, caller: Reader, ctx: Ctx) -> Response:
    """List what needs attention. Nodes that are silent or out of disk, devices out of use or used by strangers, runs
    that hang or leave their GPUs idle, and of the caller's own jobs those that failed lately or report nan.
    """
    found = attention.load(ctx.db, caller, ctx.now_us(), ctx.settings.disk_floor)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/queue/calibration", response_model=api.Calibration, dependencies=[requires("read")])
def calibration(request: Request, ctx: Ctx) -> Response:
    """Show how good estimates of running times turned out to be, by their source."""
    found = accuracy.report(ctx.db, ctx.estimator, ctx.now_us())
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/jobs/{job_id}/why", response_model=api.Why)
def why(job_id: JobRef, request: Request, ctx: Ctx, caller: Reader) -> Response:
    """Explain why a job waits, runs where it does, or ended. With its place in the queue, when it is expected to start,
    and what would start it now.
    """
    found = overview.why(ctx.db, ctx.loader, ctx.estimator, ctx.now_us(), job_id, caller)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal():
        raise field_problem("cursor", TranslatableText("queue-cursor", "give the `next` of the page before"))
    return int(cursor)
