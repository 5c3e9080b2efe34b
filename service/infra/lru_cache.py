"""A cache that evicts what was not used for longest."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Cache of the most recently used entries; safe from many threads."""

    def __init__(self, size: int) -> None:
        self._entries: LRUCache[Key, Value] = LRUCache(size)
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return the entry; None if it is not cached."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Add the entry; the least recently used is evicted when the cache is full."""
        with self._lock:
            self._entries[key] = value
