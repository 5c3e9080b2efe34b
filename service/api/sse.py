"""Server-sent events: how they look on the wire, and for how long they are sent."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from service.api.auth import current
from service.errors import ProblemError
from service.identity.callers import Caller

#: Seconds of silence after which a comment shows that the connection lives.
PING_S = 15.0
PING = b": ping\n\n"


def event(name: str, data: Mapping[str, Any], event_id: str | None = None) -> bytes:
    """One event with JSON data."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def allowed_events(
    request: Request, events: AsyncGenerator[bytes], allowed: Callable[[Caller], bool] = lambda _: True
) -> AsyncIterator[bytes]:
    """Yield the events for as long as the caller's token counts and `allowed` says so before each."""
    async with aclosing(events):
        try:
            async for part in events:
                if not allowed(await current(request)):
                    return
                yield part
        except ProblemError:
            return  # revoked since: nothing more is told
