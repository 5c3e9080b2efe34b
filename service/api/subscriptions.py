"""The subscriptions of one stream: topics by name, and the queue of events that wait to be sent."""

import asyncio
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from service.api import sse
from service.db.records.jobs import JobOwner
from service.errors import field_problem
from service.identity.callers import Caller
from service.identity.visibility import may_read
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText

#: Events that wait for a slow reader. With more the stream ends, and whoever reads it begins anew.
MAX_WAITING = 512
#: Pieces of logs that wait for a slow reader; the rest stays on the disk until then.
MAX_LOGS = 16


class Kind(StrEnum):
    """The subject of a topic."""

    JOBS = "jobs"
    QUEUE = "queue"
    NODES = "nodes"
    NOTICES = "notices"
    JOB = "job"
    METRICS = "metrics"
    LOG = "log"


_NO_JOB = JobId("")


@dataclass(frozen=True)
class Topic:
    """A topic as a client names it; `name` is the whole, by which its events are known."""

    name: str
    kind: Kind
    job: JobId = _NO_JOB
    cursor: str = ""
    """Of metrics: `cursor` of what the client has."""
    attempt: int = 0
    rank: int = 0
    offset: int = 0


_TOPIC = re.compile(
    r"(?P<list>jobs|queue|nodes|notices)"
    r"|job:(?P<job>[\w-]{1,64})"
    r"|metrics:(?P<metrics>[\w-]{1,64}):(?P<cursor>[\w-]{0,50000})"
    r"|log:(?P<log>[\w-]{1,64}):(?P<attempt>\d{1,9}):(?P<rank>-?\d{1,9}):(?P<offset>\d{1,18})",
    re.ASCII,
)


def parse(name: str, field: str = "topics") -> Topic:
    """Return the topic of a name; an ``invalid-request`` problem of the field that has it for any other text."""
    match = _TOPIC.fullmatch(name)
    if match is None:
        raise field_problem(
            field,
            TranslatableText(
                "no-topic",
                "{name!r} is none of jobs, queue, nodes, notices, job:ID, metrics:ID:CURSOR, "
                "log:ID:ATTEMPT:RANK:OFFSET",
                name=name[:80],
            ),
        )
    found = match.groupdict()
    if found["log"]:
        attempt, rank, offset = (int(found[part]) for part in ("attempt", "rank", "offset"))
        return Topic(name, Kind.LOG, JobId(found["log"]), attempt=attempt, rank=rank, offset=offset)
    if found["metrics"]:
        return Topic(name, Kind.METRICS, JobId(found["metrics"]), found["cursor"])
    return Topic(name, Kind.JOB, JobId(found["job"])) if found["job"] else Topic(name, Kind(name))


class StreamEvent(NamedTuple):
    """One event, as it is sent to everybody who follows its topic."""

    subject: JobOwner | None
    """The job that it is about; None: it tells nothing but that something has changed."""
    text: bytes


def stream_event(name: str, content: Mapping[str, Any], subject: JobOwner | None = None) -> StreamEvent:
    """Return an event whose content becomes JSON."""
    return StreamEvent(subject, sse.event(name, content))


def may_follow(caller: Caller, subject: JobOwner | None) -> bool:
    """Return true if the caller may be sent an event. Each is asked for here, and nowhere else, when it is sent."""
    return "read" in caller.scopes and (subject is None or may_read(caller, subject))


@dataclass(eq=False)
class Subscriber:
    """One open stream. It belongs to the event loop."""

    user_id: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    topics: dict[str, Topic] = field(default_factory=dict)
    ended: bool = False
    """Nothing more comes: the service ends, or the reader is too slow."""

    def __post_init__(self) -> None:
        self._waiting: asyncio.Queue[StreamEvent | None] = asyncio.Queue(MAX_WAITING)
        self._taken = asyncio.Event()

    def follows(self, *names: str) -> bool:
        """Return true if it follows one of the topics."""
        return any(name in self.topics for name in names)

    def put(self, event: StreamEvent) -> None:
        """Have an event sent; a reader that is too slow gets none any more."""
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            self.ended = True

    async def wait_and_put(self, event: StreamEvent) -> None:
        """Have an event sent, once the reader has read enough."""
        while self._waiting.qsize() >= MAX_LOGS and not self.ended:
            self._taken.clear()
            await self._taken.wait()
        self.put(event)

    def end(self) -> None:
        """Wake the reader for the last time."""
        self.ended = True
        if self._waiting.empty():
            self._waiting.put_nowait(None)

    async def take(self, timeout: float) -> list[StreamEvent]:
        """Return all events that wait, as soon as there is one; none after `timeout` seconds or at the end."""
        try:
            first = await asyncio.wait_for(self._waiting.get(), timeout)
        except TimeoutError:
            return []
        taken = [first]
        while not self._waiting.empty():
            taken.append(self._waiting.get_nowait())
        self._taken.set()
        return [event for event in taken if event is not None]
