"""Checkpoints that are written while the training goes on, in two phases as in CheckFreq (Mohan et al., FAST '21).

The training thread takes a snapshot in host memory; a thread writes it. When the ranks see, at one of their looks,
that all have written, the one that leads commits in its thread; at a later look they know that it is safe. A write
that fails on one rank, on a full disk say, discards that checkpoint on all.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from torchyard.injob import checkpoints, collective, control, notes, place

#: How long a process that ends waits for what other ranks write.
EXIT_PATIENCE_S = 60.0

RUNNING, FAILED, DONE = 0, 1, 2


class ThreadedCall:
    """One call in a thread of its own; without one, under a limit of the system, it is a call that failed.

    Never an error at its start: the other ranks have begun theirs, and would wait for this one.
    """

    def __init__(self, call: Callable[[], Exception | None] | Callable[[], None]) -> None:
        self.failure: Exception | None = None
        #: How long it took.
        self.seconds = 0.0
        self._call = call
        self._ended = threading.Event()
        try:
            threading.Thread(target=self._run, name="torchyard-checkpoint", daemon=True).start()
        except RuntimeError as error:
            self.failure = error
            self._ended.set()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self.failure = self._call()
        except Exception as error:  # noqa: BLE001 (told to the training thread)
            self.failure = error
        finally:
            self.seconds = time.monotonic() - began
            self._ended.set()

    def wait(self, seconds: float | None = None) -> None:
        self._ended.wait(seconds)

    @property
    def status(self) -> int:
        if not self._ended.is_set():
            return RUNNING
        return DONE if self.failure is None else FAILED


class PendingCheckpoint:
    """A checkpoint that is being written."""

    def __init__(
        self,
        folder: checkpoints.CheckpointFolder,
        write: Callable[[], None],
        metrics: Mapping[str, float | None],
        complete: Sequence[str],
        stall_s: float = 0.0,
    ) -> None:
        self.folder = folder
        self._metrics = metrics
        self._complete = complete
        self._stall_s = stall_s
        self._write_s = 0.0
        self._committing = False
        #: Why it is not there, once it has ended; None if it is.
        self.failure: str | None = None
        self._task = ThreadedCall(write)

    def look(self, *, wait: bool) -> bool:
        """Go on as far as all ranks have come, and return whether it has ended. All ranks call it at once."""
        while True:
            if wait:
                self._task.wait()
            status = collective.minimum(self._task.status)
            if status == RUNNING:
                return False
            if status == FAILED or self._committing:
                self._end(status)
                return True
            self._committing = True
            self._write_s = self._task.seconds
            self._task = ThreadedCall(lambda: self.folder.commit(self._metrics))
            if not wait:
                return False

    def _end(self, status: int) -> None:
        if status == DONE:
            control.measured(self._stall_s, self._write_s + self._task.seconds, self.folder.size)
            return
        self.folder.discard()
        reason = self._task.failure or "another rank failed, see its log"
        self.failure = "no checkpoint of step %d: %s" % (self.folder.step, reason)
        if self._task.failure is not None:
            notes.checkpoint_failed(self.folder.step, self._task.failure)
        elif place.leads():
            place.say("no checkpoint of step %d, the training goes on: %s" % (self.folder.step, reason))

    def close(self) -> None:
        """At the end of the process, where ranks cannot talk any more: commits what is seen to be whole."""
        deadline = time.monotonic() + EXIT_PATIENCE_S
        self._task.wait(EXIT_PATIENCE_S)
        if not place.leads() or self._task.status != DONE or self._committing:
            return
        names = [os.path.join(self.folder.path, name) for name in self._complete]
        while not all(map(os.path.exists, names)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if all(map(os.path.exists, names)):
            self.folder.commit(self._metrics)


class Writer:
    """Writes a process's checkpoints one after the other; every rank makes the same calls."""

    def __init__(self) -> None:
        self._pending: PendingCheckpoint | None = None
        #: Why the last checkpoint that has ended is not there.
        self.failure: str | None = None
        atexit.register(self._close)

    def start(self, pending: PendingCheckpoint) -> None:
        """A checkpoint is being written; `should_checkpoint` looks after it from here on."""
        self._pending = pending
        control.watch(self._look)

    def wait(self) -> None:
        """Wait until the pending checkpoint, if there is one, is committed or discarded."""
        if self._pending is not None:
            self._end(self._pending.look(wait=True))

    def _look(self) -> None:
        if self._pending is not None:
            self._end(self._pending.look(wait=False))

    def _end(self, ended: bool) -> None:
        if ended and self._pending is not None:
            self.failure = self._pending.failure
            self._pending = None
            control.watch(None)

    def _close(self) -> None:
        if self._pending is not None:
            self._pending.close()
