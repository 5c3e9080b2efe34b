"""Count of the metric points that this service has stored, so that their rollups are looked after while some come."""

import threading


class StoredPoints:
    """Sets `look` once so many points have come since it was set last: a series may have grown by as many."""

    def __init__(self, enough: int) -> None:
        self.look = threading.Event()
        self._enough = enough
        self._lock = threading.Lock()
        self._count = 0

    def add(self, points: int) -> None:
        """Count points; any thread may."""
        with self._lock:
            self._count += points
            if self._count >= self._enough:
                self._count = 0
                self.look.set()
