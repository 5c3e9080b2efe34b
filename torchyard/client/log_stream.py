"""A rank's log over server-sent events, across broken connections and restarts of the service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
from httpx_sse import EventSource, ServerSentEvent

from torchyard import api, exceptions
from torchyard.client.connection import Connection, pauses

#: Seconds for which following goes on trying to reach a service that is away.
PATIENCE_S = 300.0


class LogChunk(api.Resource):
    """A piece of a rank's log; `next` is the byte offset behind it."""

    attempt: int
    offset: int
    next: int
    text: str


def follow(connection: Connection, path: str, params: dict[str, Any]) -> Iterator[LogChunk]:
    """Yield the pieces of a log stream until its ``end``.

    A broken stream is opened again behind the last piece (``Last-Event-ID``). Raises UnreachableError when the service
    stays away for minutes.
    """
    waits, last_id = pauses(PATIENCE_S), ""
    while True:
        reason: Exception = exceptions.UnreachableError("the stream broke off")
        try:
            for event in _events(connection, path, params, last_id):
                last_id = event.id or last_id
                if event.event == "end":
                    return
                waits = pauses(PATIENCE_S)
                yield LogChunk.model_validate_json(event.data)
        except (httpx.TransportError, exceptions.ServiceError, exceptions.TooManyRequestsError) as error:
            reason = error
        if (pause := next(waits, None)) is None:
            raise connection.unreachable(reason) from reason
        time.sleep(pause)


def _events(connection: Connection, path: str, params: dict[str, Any], last_id: str) -> Iterator[ServerSentEvent]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
    with connection.stream(path, params=params, headers=headers) as response:
        for event in EventSource(response).iter_sse():
            if event.data:  # else a comment that keeps the connection alive
                yield event
