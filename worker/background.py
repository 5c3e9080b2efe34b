"""Work in the background, one piece at a time."""

import threading
from collections.abc import Callable

#: Gives a function a thread; raises RuntimeError where the system has none left.
Spawn = Callable[[Callable[[], None]], object]


class BackgroundTask:
    """Runs a function in the background, never two at the same time; started from one thread only."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._idle = threading.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        """Return whether nothing runs."""
        return self._idle.is_set()

    def start(self, function: Callable[[], None]) -> None:
        """Run a function; the caller has seen that nothing runs. Raises RuntimeError: then nothing runs still."""
        self._idle.clear()
        try:
            self._spawn(lambda: self._run(function))
        except RuntimeError:
            self._idle.set()
            raise

    def wait(self, seconds: float) -> bool:
        """Return whether nothing runs, after waiting for that at most so long."""
        return self._idle.wait(seconds)

    def _run(self, function: Callable[[], None]) -> None:
        try:
            function()
        finally:
            self._idle.set()
