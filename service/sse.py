"""Server-sent events: how they look on the wire, and the answer that carries them."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

#: Seconds of silence after which a comment shows that the connection lives.
PING_S = 15.0
PING = b": ping\n\n"


def event(name: str, data: Mapping[str, Any], event_id: str | None = None) -> bytes:
    """One event with JSON data."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """The answer; proxies are told not to hold events back."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
