"""UNIX users of the service as whom this node can run jobs."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

#: Seconds after which accounts are looked up again, and for which a heartbeat waits for a look.
EVERY_S: Final = 60.0
PATIENCE_S: Final = 1.0


class UnixAccounts:
    """Looks accounts up in the background: a directory server that hangs must not make the node silent.

    `runs_as` looks one up; `spawn` gives a function a thread.
    """

    def __init__(
        self,
        runs_as: Callable[[str], bool],
        spawn: Callable[[Callable[[], Any]], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs_as, self._spawn, self._now = runs_as, spawn, now
        #: Whether jobs can run as them, of those that were asked for last.
        self.known: dict[str, bool] = {}
        self._due = 0.0
        self._looking = threading.Lock()

    def ask(self, names: Sequence[str]) -> bool:
        """Look these up unless they are known; return whether something else is known now than before."""
        before = self.known
        if set(names) == before.keys() and self._now() < self._due:
            return False
        if self._looking.acquire(blocking=False):
            done = threading.Event()
            self._spawn(lambda: self._look(names, done))
            done.wait(PATIENCE_S)
        return self.known != before

    def _look(self, names: Sequence[str], done: threading.Event) -> None:
        try:
            self.known = {name: self._runs_as(name) for name in names}
            self._due = self._now() + EVERY_S
        finally:
            self._looking.release()
            done.set()
