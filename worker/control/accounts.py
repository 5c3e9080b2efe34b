"""UNIX users of the service as whom this node can run jobs."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from worker.background import BackgroundTask, Spawn

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
        spawn: Spawn,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs_as, self._task, self._now = runs_as, BackgroundTask(spawn), now
        #: Whether jobs can run as them, of those that were asked for last.
        self.known: dict[str, bool] = {}
        self._due = 0.0

    def ask(self, names: Sequence[str]) -> bool:
        """Look these up unless they are known; return whether something else is known now than before."""
        before = self.known
        if set(names) == before.keys() and self._now() < self._due:
            return False
        if self._task.idle:
            self._task.start(lambda: self._look(names))
            self._task.wait(PATIENCE_S)
        return self.known != before

    def _look(self, names: Sequence[str]) -> None:
        self.known = {name: self._runs_as(name) for name in names}
        self._due = self._now() + EVERY_S
