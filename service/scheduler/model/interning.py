"""Small numbers for things that many jobs have in common, so that numpy can count with them."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Interner(Generic[K]):
    """Numbers of keys, from 0, with reference counts; a number is free again once its key is dropped by all takers."""

    def __init__(self) -> None:
        self.ids: dict[K, int] = {}
        self.keys: list[K | None] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def take(self, key: K) -> int:
        """Return the key's number, which stays its own until it is dropped as often as it was taken."""
        known = self.ids.get(key)
        if known is not None:
            self._counts[known] += 1
            return known
        if self._free:
            number = self._free.pop()
            self.keys[number], self._counts[number] = key, 1
        else:
            number = len(self.keys)
            self.keys.append(key)
            self._counts.append(1)
        self.ids[key] = number
        return number

    def drop(self, number: int) -> None:
        """Undo one `take`; the last one frees the number."""
        self._counts[number] -= 1
        if not self._counts[number]:
            key = self.keys[number]
            assert key is not None
            del self.ids[key]
            self.keys[number] = None
            self._free.append(number)

    def key(self, number: int) -> K:
        """Return the key of a number in use."""
        key = self.keys[number]
        assert key is not None
        return key

    def __len__(self) -> int:
        """Return one more than the highest number ever given."""
        return len(self.keys)

    def copy(self) -> "Interner[K]":
        """Return a copy that later changes of this one do not touch."""
        other: Interner[K] = Interner()
        other.ids, other.keys = self.ids.copy(), self.keys.copy()
        other._counts, other._free = self._counts.copy(), self._free.copy()
        return other
