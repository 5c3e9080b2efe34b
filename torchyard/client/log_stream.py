"""Follows a rank's log over server-sent events, across broken connections and restarts of the service."""

import time
from collections.abc import Iterator
from typing import Any

import httpx

from torchyard import api, exceptions
from torchyard.client import sse
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
    """Pieces of a log stream until its ``end``; raises UnreachableError when the service stays away for minutes."""
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
        except (httpx.TransportError, exceptions.ServiceError) as error:
            reason = error
        if (pause := next(waits, None)) is None:
            raise connection.unreachable(reason) from reason
        time.sleep(pause)


def _events(connection: Connection, path: str, params: dict[str, Any], last_id: str) -> Iterator[sse.ServerEvent]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
    with connection.stream(path, params=params, headers=headers) as response:
        yield from sse.parse(response.iter_lines())
