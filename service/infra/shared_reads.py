"""One read for all who ask for the same: many watchers cost what one does."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from anyio import to_thread

from service.infra.lru_cache import LruCache

Value = TypeVar("Value")
#: Answers that are remembered until something is written.
REMEMBERED = 512


class _Answer(NamedTuple):
    version: int
    value: Any


class SharedReads:
    """Reads of the database by key. It belongs to the event loop.

    Nobody gets what was read before they asked: who asks while a read is under way waits for the next one, together
    with all others who do. Only while `version` stays the same, which every write changes, the last answer is given
    again. It returns None where others write as well, who are not seen at once.
    """

    def __init__(self, version: Callable[[], int | None]) -> None:
        self._version = version
        self._known: LruCache[Hashable, _Answer] = LruCache(REMEMBERED)
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what `read` does, in a thread; by the key it is the same for all who give that."""
        known = self._known.get(key)
        if known is not None and known.version == self._version():
            value: Value = known.value
            return value
        task = self._next.get(key)
        if task is not None:
            return await self._joined(task, read)
        before = self._running.get(key)
        task = asyncio.create_task(self._read(key, read, before))
        task.add_done_callback(_forget_problem)
        (self._running if before is None else self._next)[key] = task
        return await asyncio.shield(task)

    async def _joined(self, task: "asyncio.Task[Value]", read: Callable[[], Value]) -> Value:
        """Return what another's read does. A problem is one's own: the audit tells for each request what it was."""
        try:
            return await asyncio.shield(task)
        except Exception:  # noqa: BLE001  raised again by the read
            return await to_thread.run_sync(read)

    async def _read(self, key: Hashable, read: Callable[[], Value], before: "asyncio.Task[Any] | None") -> Value:
        if before is not None:
            await asyncio.wait([before])
            self._running[key] = self._next.pop(key)
        try:
            version = self._version()
            value = await to_thread.run_sync(read)
        finally:
            if key in self._running and self._running[key] is asyncio.current_task():
                del self._running[key]
        if version is not None:
            self._known.put(key, _Answer(version, value))
        return value


def _forget_problem(task: "asyncio.Task[Any]") -> None:
    """Whoever asked may have left: then nobody is told of the problem."""
    if not task.cancelled():
        task.exception()
