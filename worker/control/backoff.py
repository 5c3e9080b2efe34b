"""Waiting longer after each failure: a schedule alone, for loops that must not block in a retry as libraries do."""

import random


class Backoff:
    """Waits that double from `first` to `last` seconds, each shortened by up to half at random."""

    def __init__(self, first: float = 0.2, last: float = 5.0) -> None:
        self._first = first
        self._last = last
        self._next = first

    def next(self) -> float:
        """Seconds to wait now."""
        wait, self._next = self._next, min(self._last, self._next * 2)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311

    def reset(self) -> None:
        """The other side answered."""
        self._next = self._first
