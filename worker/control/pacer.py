"""The pause between two heartbeats."""

import threading
import time
from typing import Final

#: A change of phase is told soon, but a stream of short jobs does not make a stream of heartbeats.
CHANGE_S: Final = 1.0


class Pacer:
    """Waits that others cut short."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._nudged = False
        self._changed = False
        self._stopped = False

    def nudge(self) -> None:
        """The service has something to say: ends the wait at once."""
        with self._condition:
            self._nudged = True
            self._condition.notify_all()

    def change(self) -> None:
        """The inventory has changed: ends the wait `CHANGE_S` after it began."""
        with self._condition:
            self._changed = True
            self._condition.notify_all()

    def stop(self) -> None:
        """End this and every later wait."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until a heartbeat is due; False when it is time to stop."""
        began = time.monotonic()
        with self._condition:
            while not (self._stopped or self._nudged):
                due = began + (min(seconds, CHANGE_S) if self._changed else seconds)
                left = due - time.monotonic()
                if left <= 0:
                    break
                self._condition.wait(left)
            self._nudged = self._changed = False
            return not self._stopped
