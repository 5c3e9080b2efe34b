"""The time by which things are judged to be old: a wall clock that is set far forward makes nothing old at once.

What is deleted for its age does not come back when the clock is set right again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from service.infra.times import Clock
from torchyard.quantities import SECONDS

#: The wall clock may run ahead by so much between two looks.
AHEAD_US = SECONDS["h"] * 1_000_000
#: Seconds after which a wall clock that was set forward is believed.
BELIEVED_S = SECONDS["d"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Look:
    """Both clocks at one moment."""

    us: int
    monotonic: float


class AgeClock:
    """A wall clock (µs) that goes on as it went for a day after it was set forward. It belongs to one thread."""

    def __init__(self, now_us: Clock, monotonic: Callable[[], float]) -> None:
        self._now_us = now_us
        self._monotonic = monotonic
        self._last = self._look()
        #: Since when the wall clock is ahead, on the monotonic clock; None while it is not.
        self._ahead_since: float | None = None

    def _look(self) -> _Look:
        return _Look(self._now_us(), self._monotonic())

    def __call__(self) -> int:
        """Return the time."""
        seen = self._look()
        expected_us = self._last.us + round((seen.monotonic - self._last.monotonic) * 1e6)
        if seen.us - expected_us > AHEAD_US and not self._is_believed(seen, seen.us - expected_us):
            return expected_us
        self._last, self._ahead_since = seen, None
        return seen.us

    def _is_believed(self, seen: _Look, ahead_us: int) -> bool:
        if self._ahead_since is None:
            self._ahead_since = seen.monotonic
            _log.warning(
                "the clock was set forward by %d s: for a day nothing is deleted for its age that was not old before",
                ahead_us // 1_000_000,
            )
        return seen.monotonic - self._ahead_since >= BELIEVED_S
