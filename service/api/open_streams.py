"""Count of the streams that each user has open, so that nobody's take all connections."""

from collections import Counter
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.errors import ProblemError
from service.identity.callers import Caller
from torchyard.translatable import TranslatableText


class OpenStreams:
    """Open streams by user. It belongs to the event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    def response(self, caller: Caller, events: AsyncIterator[bytes]) -> StreamingResponse:
        """Return server-sent events as an answer that counts until it ends; ``too-many-requests`` beyond the limit."""
        if self._open[caller.user_id] >= self._limit:
            raise ProblemError(
                "too-many-requests",
                TranslatableText(
                    "many-streams",
                    "{name} has {limit} streams open, and a user may have no more: close some (pages of the "
                    "dashboard, followed logs), or ask an administrator for more (TORCHYARD_STREAMS_PER_USER).",
                    name=caller.name,
                    limit=self._limit,
                ),
            )
        self._open[caller.user_id] += 1
        return _CountedResponse(self._open, caller.user_id, events)


class _CountedResponse(StreamingResponse):
    """An answer that is sent once, and takes itself off the count however that ends."""

    def __init__(self, count: Counter[str], user_id: str, events: AsyncIterator[bytes]) -> None:
        # Proxies are told not to hold it back.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._count, self._user_id = count, user_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._count[self._user_id] -= 1
            if not self._count[self._user_id]:
                del self._count[self._user_id]


def open_streams(request: Request) -> OpenStreams:
    """Return the service's count of streams."""
    found: OpenStreams = request.app.state.open_streams
    return found
