"""Seeing a shim end the moment it does, through a pidfd, and hearing of its result before."""

import os
import select
from pathlib import Path

from worker.attempts.folder import ShimRecord
from worker.monitoring import processes

#: Most bytes that a pipe holds, unless somebody has changed that.
_PIPE = 2**16


class ProcessWatch:
    """Watches the process of a pidfd; without one it is gone already, and every wait ends at once. It may say a line
    through a pipe.
    """

    def __init__(self, descriptor: int | None, pipe: int | None = None) -> None:
        self._descriptor = descriptor
        self._pipe = pipe
        self._said = b""

    @property
    def said(self) -> bytes | None:
        """The line that it has said; None before."""
        return self._said if self._said.endswith(b"\n") else None

    def wait(self, seconds: float) -> bool:
        """Return whether the process has ended, after waiting for that, or for what it says, at most so long."""
        if self._descriptor is None:
            return True
        poll = select.poll()
        for descriptor in (self._descriptor, self._pipe):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if self._pipe in ready:
            self._hear(self._pipe)
        if self._descriptor not in ready:
            return False
        self.close()
        return True

    def _hear(self, pipe: int) -> None:
        heard = os.read(pipe, _PIPE)
        self._said += heard
        if not heard or self.said is not None:
            os.close(pipe)
            self._pipe = None

    def close(self) -> None:
        for descriptor in (self._descriptor, self._pipe):
            if descriptor is not None:
                os.close(descriptor)
        self._descriptor = self._pipe = None


def of_shim(record: ShimRecord, pipe: Path) -> ProcessWatch:
    """Watch the shim that wrote a record, and its pipe if there is one; a shim of an earlier boot has ended."""
    same_boot = record.boot_id == processes.boot_id()
    process = processes.open_process(record.pid, record.start_ticks) if same_boot else None
    return ProcessWatch(process, None if process is None else _opened(pipe))


def _opened(pipe: Path) -> int | None:
    try:
        return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # a shim of the version before, or a disk that was full
