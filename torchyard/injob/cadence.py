"""Cadence of checkpoints that nobody has asked for: as often as costs a small part of the time."""

from __future__ import annotations

import os

from torchyard.injob import layout, place
from torchyard.injob.reasons import CheckpointReason

#: The first is due after this, and no two lie closer together.
FIRST_S = 120.0
#: The part of the time that checkpoints may cost.
SHARE = 0.02
#: What a node keeps free where the worker does not say.
FLOOR = 2 << 30


def interval(stall_s: float, write_s: float) -> float:
    """Seconds between checkpoints of which each stalls the training and is written beside it for so long.

    Reading it again and storing it, which the node does, is taken to last as long as writing it.
    """
    return max(FIRST_S, (stall_s + 2 * write_s) / SHARE)


class Cadence:
    """Chooses the time of the next checkpoint from what the last one cost."""

    def __init__(self) -> None:
        self._interval = FIRST_S
        self._size = 0

    def measured(self, stall_s: float, write_s: float, size: int) -> None:
        """A checkpoint was taken: what it cost, and its bytes on this node's disk; 0: as the last."""
        self._interval, self._size = interval(stall_s, write_s), size or self._size

    def due(self, seconds: float) -> bool:
        """Return whether a checkpoint is due so long after the last."""
        return seconds >= self._interval

    def lacks_room(self, attempt: place.CurrentAttempt) -> str | None:
        """Reason why the disk has no room for one more and for the copy that is stored of it; None if it has."""
        status = os.statvfs(attempt.folder)
        free, floor = status.f_bavail * status.f_frsize, int(os.environ.get(layout.DISK_FLOOR, FLOOR))
        if free - 2 * self._size >= floor:
            return None
        return CheckpointReason("no-room", free=free >> 20, floor=floor >> 20, size=self._size >> 20)
