"""Wake-ups within the process: writers notify a topic, followers wake.

A topic is a word such as ``job:<id>``, ``jobs`` or ``logs:<attempt>``. Nothing is carried and nothing is kept: whoever
wakes reads the database. Wake-ups that arrive before a follower looks are one wake-up. Wake-ups of other services on
the database come in by `service.infra.relay`.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

#: At the end of a listened topic: all that begin so. As a topic that is notified: anything may have changed.
ANY = "*"


class Listener:
    """One follower, on the event loop that made it."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._lock = threading.Lock()
        self._topics: set[str] = set()

    @property
    def closing(self) -> bool:
        """The service is about to end: answer what there is and return."""
        return self._hub.closing

    def wake(self, topic: str | None) -> None:
        """Called by the hub, from any thread."""
        with self._lock:
            first = not self._topics
            self._topics.add(topic or "")
        if first:
            with suppress(RuntimeError):  # the loop is closed: nobody follows any more
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout: float) -> frozenset[str]:
        """The topics notified since the last call, as soon as there is one; empty after `timeout` seconds or at the end
        of the service.
        """
        if not self.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), timeout)
        self._event.clear()
        with self._lock:
            topics, self._topics = self._topics, set()
        return frozenset(topics - {""})


class Hub:
    """Topics that can be notified from any thread."""

    def __init__(self) -> None:
        # Reentrant, because `close` may be called by a signal handler in the middle of another call.
        self._lock = threading.RLock()
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        self.closing = False

    def notify(self, *topics: str) -> None:
        """Wake everybody who listens to one of the topics; never blocks. Call it after the commit."""
        with self._lock:
            woken = [(listener, topic) for topic in topics for listener in self._followers(topic)]
        for listener, topic in woken:
            listener.wake(topic)

    def _followers(self, topic: str) -> set[Listener]:
        if topic == ANY:
            return set().union(*self._listeners.values())
        group = topic.partition(":")[0] + ":" + ANY
        return self._listeners.get(topic, set()) | self._listeners.get(group, set())

    def close(self) -> None:
        """Wake everybody for the last time, so that streams end and the server can stop; safe in a signal handler."""
        with self._lock:
            self.closing = True
            followers = set().union(*self._listeners.values())
        for listener in followers:
            listener.wake(None)

    @asynccontextmanager
    async def listen(self, *topics: str) -> AsyncIterator[Listener]:
        """Follow the topics; ``job:*`` follows every topic that begins with ``job:``."""
        listener = Listener(self)
        with self._lock:
            for topic in topics:
                self._listeners[topic].add(listener)
        try:
            yield listener
        finally:
            with self._lock:
                for topic in topics:
                    self._listeners[topic].discard(listener)
                    if not self._listeners[topic]:
                        del self._listeners[topic]
