"""Seeing a shim end the moment it does, through a pidfd."""

import os
import select

from worker.attempts.folder import ShimRecord
from worker.monitoring import processes


class ProcessWatch:
    """Watches the process of a pidfd; without one it is gone already, and every wait ends at once."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> bool:
        """Return whether the process has ended, after waiting for that at most so long."""
        if self._descriptor is None:
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        self.close()
        return True

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def of_shim(record: ShimRecord) -> ProcessWatch:
    """Watch the shim that wrote a record; a shim of an earlier boot has ended."""
    same_boot = record.boot_id == processes.boot_id()
    return ProcessWatch(processes.open_process(record.pid, record.start_ticks) if same_boot else None)
