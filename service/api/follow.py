"""Server-sent events that follow what changes: a rank's log, or the lists of jobs and nodes.

Between events a follower holds neither a thread nor a database connection. All of them end when the service does.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from service.api import sse
from service.context import Context
from service.identity.callers import Caller
from service.infra.hub import ANY, Listener
from service.jobs import queries
from service.storage.store import BlobStore
from service.telemetry import logs
from torchyard.ids import JobId

#: Bytes of log in one event.
EVENT_BYTES = 64 * 1024
#: A node that ended an attempt but can't say that it has sent everything is believed after so many quiet seconds.
QUIET_S = 10.0
#: Changes are gathered for so long before they are told.
GATHER_S = 0.25
#: With more jobs than this at once, a page had better read its whole list.
MAX_JOBS = 100


class LogEvent(NamedTuple):
    """A change of a log."""

    name: str
    content: Mapping[str, Any]
    id: str


PING = LogEvent("ping", {}, "")


async def log_stream(events: AsyncGenerator[LogEvent]) -> AsyncGenerator[bytes]:
    """The events as a stream of their own."""
    async with aclosing(events):
        async for event in events:
            yield sse.PING if event is PING else sse.event(*event)


class LogFollower:
    """One client that follows a rank's log; holds neither thread nor connection while it waits."""

    def __init__(self, ctx: Context, job_id: JobId, rank: int, number: int | None, offset: int) -> None:
        self._ctx = ctx
        self._job_id = job_id
        self._rank = rank
        self._number = number
        self._offset = offset
        self._quiet_since = ctx.monotonic()
        self._sent = ctx.monotonic()

    async def check(self) -> None:
        """Raise ``not-found`` for a strange job or attempt, before an answer is begun."""
        await self._look()

    async def events(self) -> AsyncGenerator[LogEvent]:
        """Yield ``data`` as the log grows, ``ping`` in silence, ``end`` when the attempt is over and all is sent."""
        async with self._ctx.hub.listen(f"job:{self._job_id}") as listener:
            seen = await self._look()
            while seen.attempt_id is None and not seen.final and not listener.closing:
                if not await listener.wait(sse.PING_S):
                    yield PING
                seen = await self._look()
        self._number = seen.attempt or None
        async with self._ctx.hub.listen(f"job:{self._job_id}", f"logs:{seen.attempt_id}") as listener:
            async for part in self._follow(listener):
                yield part

    async def _follow(self, listener: Listener) -> AsyncIterator[LogEvent]:
        while not listener.closing:
            seen = await self._look()
            while self._offset < seen.size and (piece := await self._next(seen)) is not None:
                self._sent = self._quiet_since = self._ctx.monotonic()
                yield piece
            if self._may_end(seen):
                yield LogEvent("end", {"attempt": seen.attempt, "offset": self._offset}, self._id(seen))
                return
            if not await listener.wait(1.0 if seen.final else sse.PING_S) and self._is_time_to_ping():
                yield PING

    async def _look(self) -> logs.LogView:
        """Look at the log, together with all who follow it."""
        ctx, log = self._ctx, (self._job_id, self._rank, self._number)
        return await ctx.reads.get(("log", *log), partial(logs.current, ctx.db, *log))

    async def _next(self, seen: logs.LogView) -> LogEvent | None:
        """The next event, read together with all who are as far; None when all that can be shown is sent."""
        offset = self._offset
        place = (seen, self._rank, offset, self._may_end(seen))
        text, used = await self._ctx.reads.get(("piece", *place), partial(_piece, self._ctx.store, *place))
        if not used:
            return None
        self._offset = offset + used
        content = {"attempt": seen.attempt, "offset": offset, "next": self._offset, "text": text}
        return LogEvent("data", content, self._id(seen))

    def _id(self, seen: logs.LogView) -> str:
        return f"{seen.attempt}:{self._offset}"

    def _may_end(self, seen: logs.LogView) -> bool:
        return seen.settled or (seen.final and self._ctx.monotonic() - self._quiet_since >= QUIET_S)

    def _is_time_to_ping(self) -> bool:
        if self._ctx.monotonic() - self._sent < sse.PING_S - 1:
            return False
        self._sent = self._ctx.monotonic()
        return True


def _piece(store: BlobStore, seen: logs.LogView, rank: int, offset: int, is_over: bool) -> tuple[str, int]:
    """Return text of a log from an offset on, and how many bytes it took."""
    data = logs.read(store, seen, rank, offset, EVENT_BYTES)
    return logs.decode(data, last=is_over and offset + len(data) >= seen.size)


async def changes(ctx: Context, who: Callable[[], Awaitable[Caller]]) -> AsyncGenerator[bytes]:
    """Events for pages that show jobs and nodes: ``job`` {id, version}, ``jobs`` {} and ``nodes`` {}.

    `who` finds the caller anew for each of them, and ends the stream by its problem where the token no longer counts.
    """
    async with ctx.hub.listen("job:*", "metrics:*", "jobs", "queue", "node:*") as listener:
        yield sse.PING
        while not listener.closing:
            topics = await listener.wait(sse.PING_S)
            for part in await run_in_threadpool(_tell, ctx, await who(), topics):
                yield part
            if topics:
                await asyncio.sleep(GATHER_S)


def _tell(ctx: Context, caller: Caller, topics: frozenset[str]) -> list[bytes]:
    if not topics:
        return [sse.PING]
    jobs = sorted({JobId(topic.partition(":")[2]) for topic in topics if topic.startswith(("job:", "metrics:"))})
    few = jobs if len(jobs) <= MAX_JOBS else []
    told = [sse.event("job", job) for job in queries.versions_of(ctx.db, caller, few)] if few else []
    if not topics.isdisjoint({"jobs", "queue", ANY}) or len(jobs) > MAX_JOBS:
        told.append(sse.event("jobs", {}))
    if any(topic == ANY or topic.startswith("node:") for topic in topics):
        told.append(sse.event("nodes", {}))
    return told
