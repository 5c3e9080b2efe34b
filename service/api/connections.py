"""Connections whose client keeps the service waiting: they are closed in time, and first when connections run short."""

import asyncio
import resource
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Seconds that the head of a request may take, from the connection or its first byte.
HEAD_S = 15.0
#: Seconds that a body may pause.
BODY_PAUSE_S = 60.0
#: Open files beyond which a limit is not raised: containers often allow a billion.
MAX_FILES = 65_536
#: Connections that are kept at most, so that looking through them stays cheap.
MAX_CONNECTIONS = 4096


def raise_file_limit() -> int:
    """Raise the limit of open files as far as the process may and it is of use; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, min(hard, MAX_FILES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def most_connections() -> int:
    """Return how many connections are kept: half of the open files; database, blobs and accepting need the rest."""
    return min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class TimedConnection(HttpToolsProtocol):
    """A connection that waits for no client for ever.

    When there are too many, the one whose client has kept a request unfinished or an answer unread for longest is
    closed, else one without a request; clients that send whole requests and read the answers notice nothing.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = most_connections()
        self._since: float | None = None
        self._until = 0.0
        self._unread_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._await(HEAD_S)
        if len(self.connections) > self._most:
            self._evict()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        self._unset_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await(HEAD_S)

    def on_headers_complete(self) -> None:
        self._await(BODY_PAUSE_S)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._await(BODY_PAUSE_S)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._arrived()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Note that the client does not read; it has no time limit, since a log may be read in a pager."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def _await(self, seconds: float) -> None:
        """Give the client so long for what comes next."""
        self._since = self.loop.time()
        self._until = self._since + seconds
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer()

    def _arrived(self) -> None:
        """Note that nothing is awaited. The timer stays: each request would set several, and hardly one ever counts."""
        self._since = None

    def _set_timer(self) -> None:
        self._unset_timer()
        self._timer = self.loop.call_at(self._until, self._check)

    def _unset_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """Close if the client is late; while a full buffer keeps us from reading, it is not to blame."""
        self._timer = None
        if self._since is None:
            return
        if self._until > self.loop.time():
            self._set_timer()
        elif self.flow.read_paused:
            self._await(BODY_PAUSE_S)
        else:
            self.transport.abort()

    def _evict(self) -> None:
        others = [cast("TimedConnection", each) for each in self.connections if each is not self]
        keeping = [each for each in others if each._kept_waiting_since is not None]
        idle = [each for each in others if each.cycle is not None and each.cycle.response_complete]
        chosen = (
            min(keeping, key=lambda each: each._kept_waiting_since or 0.0) if keeping else idle[0] if idle else self
        )
        self.connections.discard(chosen)
        chosen.transport.abort()

    @property
    def _kept_waiting_since(self) -> float | None:
        return min((since for since in (self._since, self._unread_since) if since is not None), default=None)
