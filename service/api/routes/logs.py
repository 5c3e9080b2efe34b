"""Logs of a job, raw or as they grow; and the stream that tells pages what has changed."""

from typing import Annotated

from fastapi import Depends, Header, Query, Request, Response
from pydantic import AwareDatetime
from starlette.responses import StreamingResponse

from service.api import follow, sse
from service.api.answers import answer, not_modified
from service.api.auth import context, current, requires
from service.api.open_streams import open_streams
from service.api.routes.refs import JobRef, OwnedJob
from service.api.routes.router import api_router
from service.context import Context
from service.errors import field_problem
from service.identity.visibility import may_read
from service.infra.etags import etag
from service.infra.times import microseconds
from service.telemetry import log_lines, logs
from torchyard import api
from torchyard.spec import MAX_NODES
from torchyard.translatable import TranslatableText

router = api_router("logs", dependencies=[requires("read")])
Ctx = Annotated[Context, Depends(context)]
WHOSE = "A rank; -1 for the launcher's own words, -2 for those on the second node, and so on"
Rank = Annotated[int, Query(ge=-MAX_NODES, lt=2**31, description=WHOSE)]
Attempt = Annotated[int | None, Query(ge=1, lt=2**31, description="Number of the attempt; the newest if absent")]

SINCE = (
    "Begin with what arrived at this time, exact to a few seconds and to the whole line. A log that was "
    "stored by a version without this begins at its start"
)
Since = Annotated[AwareDatetime | None, Query(description=SINCE)]


@router.get("/jobs/{job_id}/logs", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
def raw(
    job_id: JobRef,
    request: Request,
    ctx: Ctx,
    rank: Rank = 0,
    attempt: Attempt = None,
    offset: Annotated[int, Query(gt=-(2**62), lt=2**62, description="A byte; negative: from the end")] = 0,
    limit: Annotated[int, Query(ge=1, le=logs.MAX_READ, description="Bytes at most")] = logs.MAX_READ,
    since: Since = None,
) -> Response:
    """Read bytes of a rank's log. The headers `TorchYard-Offset`, `TorchYard-Next-Offset`, `TorchYard-Size` and
    `TorchYard-Attempt` say which; go on at the next offset until it is the size.
    """
    since_us = None if since is None else microseconds(since)
    view, arrived = logs.current_since(ctx.db, job_id, rank, attempt, since_us)
    tag = etag(view.tag)
    if (same := not_modified(request, tag)) is not None:
        return same
    start = min(offset, view.size) if offset >= 0 else max(0, view.size + offset)
    start = max(start, logs.line_start(ctx.store, view, rank, arrived))
    data = logs.read(ctx.store, view, rank, start, limit)
    headers = {
        "ETag": tag,
        "TorchYard-Offset": str(start),
        "TorchYard-Next-Offset": str(start + len(data)),
        "TorchYard-Size": str(view.size),
        "TorchYard-Attempt": str(view.attempt),
    }
    return Response(data, headers=headers, media_type="text/plain; charset=utf-8")


@router.get(
    "/jobs/{job_id}/logs/file", responses={200: {"content": {"text/plain": {}}}}, response_class=StreamingResponse
)
def file(job_id: JobRef, ctx: Ctx, rank: Rank = 0, attempt: Attempt = None) -> StreamingResponse:
    """Download a rank's whole log as it is now."""
    view = logs.current(ctx.db, job_id, rank, attempt)
    name = f"attempt-{view.attempt}-{f'rank-{rank}' if rank >= 0 else f'launcher-{-rank}'}.log"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    data = logs.whole(ctx.store, view, rank)
    return StreamingResponse(data, headers=headers, media_type="text/plain; charset=utf-8")


@router.get("/jobs/{job_id}/logs/streams", response_model=list[api.LogStream])
def streams(job_id: JobRef, request: Request, ctx: Ctx) -> Response:
    """List the logs of a job, by attempt and rank."""
    found = logs.streams(ctx.db, job_id)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/jobs/{job_id}/logs/index", response_model=api.LogIndex)
def index(
    job_id: JobRef,
    ctx: Ctx,
    rank: Rank = 0,
    attempt: Attempt = None,
    start: Annotated[int, Query(ge=0, lt=2**62, description="A byte that begins a line: index from there on")] = 0,
) -> Response:
    """Show where the lines of a rank's log begin, and when they came. So a viewer reads only the bytes in sight."""
    view = logs.current(ctx.db, job_id, rank, attempt)
    start = min(start, view.size)
    noted = log_lines.times(ctx.db, view, rank, start)
    return answer(log_lines.index(_reader(ctx, view, rank), view, start, noted))


@router.get("/jobs/{job_id}/logs/search", response_model=api.LogSearch)
def search(
    job_id: JobRef,
    ctx: Ctx,
    rank: Rank = 0,
    attempt: Attempt = None,
    q: Annotated[str, Query(max_length=500, description="Words as they stand in a line")] = "",
    errors: Annotated[bool, Query(description="Lines that tell of an error, instead of `q`")] = False,
    case: Annotated[bool, Query(description="Large and small letters differ")] = False,
    context: Annotated[int, Query(ge=0, le=10, description="Lines around each")] = 2,
    limit: Annotated[int, Query(ge=1, le=5_000, description="Lines that are shown; all are counted")] = 200,
    offset: Annotated[int, Query(ge=0, lt=2**62, description="`next` of the answer before")] = 0,
    line: Annotated[int, Query(ge=0, lt=2**62, description="`line` of the answer before")] = 0,
) -> Response:
    """Search the lines of a rank's log. One answer reads 128 MiB at most: go on at `next` until it is null."""
    if not (q or errors):
        raise field_problem("q", TranslatableText("search-empty", "is empty: say what is searched for"))
    view = logs.current(ctx.db, job_id, rank, attempt)
    words = log_lines.ERRORS if errors else (q.encode(),)
    query = log_lines.LogQuery(words=words, case=case or errors, start=offset, line=line, context=context, limit=limit)
    return answer(log_lines.search(_reader(ctx, view, rank), view, query))


def _reader(ctx: Context, view: logs.LogView, rank: int) -> log_lines.Read:
    return lambda offset, limit: logs.read(ctx.store, view, rank, offset, limit)


@router.get("/jobs/{job_id}/logs/stream", response_class=StreamingResponse)
async def stream(
    request: Request,
    job: OwnedJob,
    ctx: Ctx,
    rank: Rank = 0,
    attempt: Attempt = None,
    offset: Annotated[int, Query(ge=0, lt=2**62, description="A byte to begin at")] = 0,
    last_event_id: Annotated[str | None, Header(description="Id of the last event that was read: go on there")] = None,
) -> StreamingResponse:
    """Follow a rank's log as it grows (server-sent events).

    Event `data` is `{"attempt", "offset", "next", "text"}`, event `end` comes when the attempt is over and all is
    sent. An id is `attempt:next`; a client that comes back with it as `Last-Event-ID` goes on there.
    """
    if last_event_id:
        attempt, offset = _resume(last_event_id, attempt)
    follower = follow.LogFollower(ctx, job.id, rank, attempt, offset)
    await follower.check()
    events = sse.allowed_events(request, follow.log_stream(follower.events()), lambda caller: may_read(caller, job))
    return open_streams(request).response(await current(request), events)


def _resume(event_id: str, attempt: int | None) -> tuple[int | None, int]:
    number, colon, offset = event_id.rpartition(":")
    if not (_is_count(offset, 18) and (_is_count(number, 9) or not colon)):
        raise field_problem(
            "Last-Event-ID",
            TranslatableText("stream-event", "must be the id of an event of this stream: leave it out to start anew"),
        )
    return int(number or 0) or attempt, int(offset)


def _is_count(text: str, digits: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= digits


@router.get("/stream", response_class=StreamingResponse)
async def changes(request: Request, ctx: Ctx) -> StreamingResponse:
    """Follow what changes (server-sent events). `job` comes with `{"id", "version"}`, `jobs` when the list or the queue
    changed, `nodes` when a node did; `job` only of those that the caller may read. A page reads again what it shows.
    """
    events = sse.allowed_events(request, follow.changes(ctx, lambda: current(request)))
    return open_streams(request).response(await current(request), events)
