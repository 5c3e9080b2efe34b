"""One stream for each browser: whoever follows a topic gets its events, which are made once for all of them.

States and changes are told at once, progress and metrics once a second, whatever the number of streams. Between events
a stream holds neither a thread nor a database connection.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from service.api import sse
from service.api.follow import LogFollower
from service.api.subscriptions import (
    Kind,
    StreamEvent,
    Subscriber,
    Topic,
    may_follow,
    stream_event,
)
from service.api.throttle import Throttle
from service.context import Context
from service.db.records.jobs import JobOwner
from service.errors import ProblemError, not_found
from service.identity.callers import Caller
from service.infra.hub import ANY, Listener
from service.jobs import queries
from service.telemetry import metrics
from torchyard import api
from torchyard.ids import JobId

log = logging.getLogger(__name__)
#: Seconds between two events of a topic at least, by its first word.
EVERY_S = {"job": 0.25, "metrics": 1.0, "jobs": 1.0, "queue": 1.0, "nodes": 5.0, "notices": 0.25}
#: Seconds of silence after which a stream says that it lives: browsers show nothing of comments.
BEAT_S = 5.0
#: With more jobs than this at once, a page had better read its whole list.
MAX_JOBS = 100
#: With more new points than this, a page had better read as many as it can show.
MAX_POINTS = 5_000
#: Seconds after which a topic is taken up again whose events could not be made.
RETRY_S = 5.0


@dataclass
class _Curves:
    """Points of a job's metrics that its followers have, all of them the same."""

    cursor: str
    followers: dict[Subscriber, Topic] = field(default_factory=dict)


class Publisher:
    """All streams, and the task that makes their events while there is a stream. It belongs to the event loop."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._subscribers: dict[str, Subscriber] = {}
        self._curves: dict[JobId, _Curves] = {}
        self._joining: list[tuple[Subscriber, Topic]] = []
        self._logs: dict[tuple[Subscriber, str], asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._listener: Listener | None = None

    async def events(
        self, topics: Iterable[Topic], caller: Caller, current: Callable[[], Awaitable[Caller]]
    ) -> AsyncGenerator[bytes]:
        """Yield a new stream's events until its reader leaves, its token ends or the service does.

        The first is ``open``, with the id under which its topics can be changed; ``beat`` comes in silence.
        """
        subscriber = Subscriber(caller.user_id)
        self._subscribers[subscriber.id] = subscriber
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            self._change(subscriber, topics)
            yield sse.event("open", {"stream": subscriber.id})
            while not subscriber.ended and not self._ctx.hub.closing:
                waiting = await subscriber.take(BEAT_S)
                caller = await current()
                allowed = [event.text for event in waiting if may_follow(caller, event.subject)]
                yield b"".join(allowed) or sse.event("beat", {})
        except ProblemError:
            return  # revoked since: nothing more is told
        finally:
            self._change(subscriber, ())
            del self._subscribers[subscriber.id]

    def subscribe(self, stream_id: str, caller: Caller, topics: Sequence[Topic]) -> None:
        """Change what a stream follows; ``not-found`` for one that is not open or another user's."""
        subscriber = self._subscribers.get(stream_id)
        if subscriber is None or subscriber.user_id != caller.user_id:
            raise not_found("stream", stream_id)
        self._change(subscriber, topics)

    def _change(self, subscriber: Subscriber, topics: Iterable[Topic]) -> None:
        before, subscriber.topics = subscriber.topics, {topic.name: topic for topic in topics}
        for name, topic in before.items():
            if name not in subscriber.topics:
                self._leave(subscriber, topic)
        for name, topic in subscriber.topics.items():
            if name not in before:
                self._join(subscriber, topic)

    def _join(self, subscriber: Subscriber, topic: Topic) -> None:
        if topic.kind is Kind.LOG:
            self._logs[subscriber, topic.name] = asyncio.create_task(self._follow_log(subscriber, topic))
        if topic.kind is Kind.METRICS:
            self._joining.append((subscriber, topic))
            if self._listener is not None:
                self._listener.wake(None)

    def _leave(self, subscriber: Subscriber, topic: Topic) -> None:
        if (task := self._logs.pop((subscriber, topic.name), None)) is not None:
            task.cancel()
        curves = self._curves.get(topic.job)
        if topic.kind is Kind.METRICS and curves is not None and curves.followers.get(subscriber) == topic:
            del curves.followers[subscriber]
            if not curves.followers:
                del self._curves[topic.job]

    async def _run(self) -> None:
        throttle = Throttle(lambda topic: EVERY_S[topic.partition(":")[0]])
        try:
            async with self._ctx.hub.listen(
                "job:*", "metrics:*", "jobs", "queue", "notices", "node:*"
            ) as self._listener:
                while self._subscribers and not self._listener.closing:
                    wait_s = 0.0 if self._joining else throttle.wait_s(self._ctx.monotonic(), sse.PING_S)
                    woken = await self._listener.wait(wait_s) if wait_s else frozenset[str]()
                    if ANY in woken:  # nobody knows what was missed: browsers begin anew, which reads it all
                        return
                    throttle.add("nodes" if topic.startswith("node:") else topic for topic in sorted(woken))
                    await self._catch_up()
                    await self._publish(throttle.take(self._ctx.monotonic()))
        except Exception:
            log.exception("the stream of events stopped; browsers begin a new one")
        finally:
            self._listener = None
            for subscriber in self._subscribers.values():
                subscriber.end()

    async def _publish(self, topics: Sequence[str]) -> None:
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for topic in topics:
            kind, _, name = topic.partition(":")
            by_kind[kind].append(name)
        await self._publish_jobs(by_kind[Kind.JOB], by_kind[Kind.METRICS])
        for job_id in map(JobId, by_kind[Kind.METRICS]):
            if (curves := self._curves.get(job_id)) is not None:
                with self._retried(f"metrics:{job_id}"):
                    await self._publish_points(job_id, curves)
        if len(by_kind[Kind.JOB]) > MAX_JOBS:
            by_kind[Kind.JOBS].append("")
        for kind in (Kind.JOBS, Kind.QUEUE, Kind.NODES, Kind.NOTICES):
            if by_kind[kind]:
                self._send(stream_event(kind, {}), kind)

    async def _publish_jobs(self, changed: Sequence[str], progressed: Sequence[str]) -> None:
        followed = {topic for subscriber in self._subscribers.values() for topic in subscriber.topics}
        both = dict.fromkeys([*changed, *progressed])
        # A page of one job reads nothing anew when many change, as a list does.
        wanted = [JobId(job_id) for job_id in both if f"job:{job_id}" in followed]
        if "jobs" in followed:
            listed = [JobId(job_id) for job_id in both if f"job:{job_id}" not in followed]
            wanted += listed[: max(0, MAX_JOBS - len(wanted))]
        if wanted:
            await self._tell_jobs(wanted, frozenset(changed))

    async def _tell_jobs(self, job_ids: Sequence[JobId], changed: frozenset[str]) -> None:
        with self._retried(*(f"job:{each}" if each in changed else f"metrics:{each}" for each in job_ids)):
            try:
                found = await run_in_threadpool(self._read_jobs, job_ids)
            except SQLAlchemyError:
                raise
            except Exception:
                if len(job_ids) == 1:
                    raise
                for each in job_ids:  # a fault in one is not the others'
                    await self._tell_jobs([each], changed)
                return
            for subject, resource in found:
                event = stream_event("job", {"job": resource, "changed": resource["id"] in changed}, subject)
                self._send(event, Kind.JOBS, f"job:{resource['id']}")

    @contextmanager
    def _retried(self, *topics: str) -> Iterator[None]:
        """Have topics whose events cannot be made taken up again later; all others go on meanwhile."""
        try:
            yield
        except Exception:
            log.exception("%s cannot be told now", ", ".join(topics))
            asyncio.get_running_loop().call_later(RETRY_S, self._wake, topics)

    def _wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            if self._listener is not None:
                self._listener.wake(topic)

    def _read_jobs(self, job_ids: Sequence[JobId]) -> list[tuple[JobOwner, dict[str, Any]]]:
        found = queries.with_owners(self._ctx.db, job_ids)
        # A spec may be long and never changes without a new version, with which it is read again.
        return [(owner, job.model_dump(mode="json", exclude={"spec"})) for owner, job in found]

    def _send(self, event: StreamEvent, *topics: str) -> None:
        for subscriber in self._subscribers.values():
            if subscriber.follows(*topics):
                subscriber.put(event)

    async def _catch_up(self) -> None:
        """Bring new followers of metrics to where the others are."""
        joining, self._joining = self._joining, []
        for subscriber, topic in joining:
            if subscriber.topics.get(topic.name) != topic:
                continue
            curves = self._curves.setdefault(topic.job, _Curves(topic.cursor))
            try:
                await self._join_curves(subscriber, topic, curves)
            except Exception:
                log.exception("metrics:%s cannot be told now", topic.job)
                asyncio.get_running_loop().call_later(RETRY_S, self._join, subscriber, topic)
            if not curves.followers:
                self._curves.pop(topic.job, None)

    async def _join_curves(self, subscriber: Subscriber, topic: Topic, curves: _Curves) -> None:
        if curves.followers:  # the new follower may be ahead of them
            await self._publish_points(topic.job, curves)
        until = curves.cursor if curves.followers else None
        if until != topic.cursor:
            read = await self._read_points(topic.job, topic.cursor, until)
            curves.cursor = until or (read[1].cursor if read else topic.cursor)
            if curves.cursor != topic.cursor:
                self._tell_points([subscriber], topic.cursor, read)
        if subscriber.topics.get(topic.name) == topic:
            curves.followers[subscriber] = topic

    async def _publish_points(self, job_id: JobId, curves: _Curves) -> None:
        before = curves.cursor
        read = await self._read_points(job_id, before, None)
        if read is not None and read[1].cursor != before:
            curves.cursor = read[1].cursor
            self._tell_points(list(curves.followers), before, read)

    async def _read_points(self, job_id: JobId, since: str, until: str | None) -> tuple[JobOwner, api.Metrics] | None:
        def read() -> tuple[JobOwner, api.Metrics]:
            subject = queries.owner(self._ctx.db, job_id)
            return subject, metrics.newer(self._ctx.db, job_id, since, until, MAX_POINTS)

        try:
            return await run_in_threadpool(read)
        except ProblemError:
            return None  # a strange cursor, or no such job: nothing to tell

    def _tell_points(
        self, subscribers: Iterable[Subscriber], since: str, read: tuple[JobOwner, api.Metrics] | None
    ) -> None:
        if read is None:
            return
        subject, found = read
        content = found.model_dump(mode="json", exclude={"series": {"__all__": {"buckets"}}})
        event = stream_event("metrics", {"job": subject.id, "since": since, **content}, subject)
        for subscriber in subscribers:
            subscriber.put(event)

    async def _follow_log(self, subscriber: Subscriber, topic: Topic) -> None:
        follower = LogFollower(self._ctx, topic.job, topic.rank, topic.attempt or None, topic.offset)
        while True:
            try:
                subject = await run_in_threadpool(queries.owner, self._ctx.db, topic.job)
                async for name, content, _ in follower.events():
                    kind = {"data": "log", "end": "log-end"}.get(name)
                    if kind is not None:
                        await subscriber.wait_and_put(stream_event(kind, {"topic": topic.name, **content}, subject))
            except ProblemError:
                return  # no such job or attempt
            except Exception:
                log.exception("%s cannot be told now", topic.name)
                await asyncio.sleep(RETRY_S)
            else:
                return
