"""``/live``: one stream of events for all that a browser shows."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from starlette.responses import StreamingResponse

from service.api import subscriptions
from service.api.auth import current, requires
from service.api.open_streams import open_streams
from service.api.publisher import Publisher
from service.api.routes.router import api_router
from service.identity.callers import Caller
from torchyard import api

router = api_router("live", "/live")
Reader = Annotated[Caller, requires("read")]


async def _publisher(request: Request) -> Publisher:
    found: Publisher = request.app.state.publisher
    return found


Streams = Annotated[Publisher, Depends(_publisher)]


@router.get("", response_class=StreamingResponse)
async def open_stream(
    request: Request,
    caller: Reader,
    publisher: Streams,
    topic: Annotated[list[str] | None, Query(description="What to follow from the first moment on")] = None,
) -> StreamingResponse:
    """Follow all that a page shows (server-sent events), in one stream.

    `open` comes first, with `{"stream"}`; `beat` says every few seconds that the stream lives. The topics `jobs`,
    `queue` and `nodes` bring an event of the same name with `{}` when that list should be read again; `job:ID` and
    `jobs` bring `job` with `{"job", "changed"}`, a job without its spec, at once when it has changed and once a
    second as it goes on; `metrics:ID:CURSOR` brings `metrics` with the points since `since`, or `reset` where they
    should be read again; `log:ID:ATTEMPT:RANK:OFFSET` brings `log` and at its end
    `log-end`, as the log's own stream does.
    """
    topics = [subscriptions.parse(name, "topic") for name in topic or ()]
    return open_streams(request).response(caller, publisher.events(topics, caller, lambda: current(request)))


@router.put("/{stream}", status_code=204)
async def follow(
    stream: Annotated[str, Path(description="Id of the stream, from its event `open`.")],
    asked: api.LiveTopics,
    caller: Reader,
    publisher: Streams,
) -> None:
    """Change what an open stream of the caller's follows."""
    publisher.subscribe(stream, caller, [subscriptions.parse(name) for name in asked.topics])
