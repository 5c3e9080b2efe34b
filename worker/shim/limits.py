"""Main memory of an attempt: how much it held at most, and its end once it has held too much."""

import os
from dataclasses import dataclass, field

from worker.shim import cgroups, table
from worker.shim.files import Json

#: Name of the failure in `torchyard.failures.fingerprints`.
MEMORY_LIMIT = "memory-limit"
#: Seconds between two looks at how much is held, where the kernel enforces the limit.
SAMPLE_S = 1.0
#: The same where nobody but the shim does.
WATCH_S = 2.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class MemoryWatch:
    """Memory of one attempt. `record` is what the worker has set up (`worker.limits.node.NodeLimits.create`)."""

    record: Json
    #: The most that was seen, in bytes, without the page cache; None: nobody could look.
    peak: int | None = None
    _due: float = field(default=0.0, repr=False)

    def too_much(self, root: int, now: float) -> str | None:
        """Say that the processes below `root` have held more than they may; None as long as they have not."""
        if self._killed():
            self._held(self.record["memory"])
            return f"used more than its memory of {self.record['memory_words']}"
        if now < self._due:
            return None
        if self.record["used"] is not None:
            self._due = now + SAMPLE_S
            self._sample()
            return None
        self._due = now + WATCH_S
        return self._watched(root)

    def _killed(self) -> bool:
        """Return whether the kernel has killed a process at the limit."""
        oom = self.record["oom"]
        return (
            self.record["memory"] is not None and oom is not None and bool(cgroups.counter(oom["file"], oom["names"]))
        )

    def _sample(self) -> None:
        used = self.record["used"]
        held = cgroups.counter(used["file"], used["names"])
        if held is not None:
            self._held(held)

    def _held(self, size: int) -> None:
        self.peak = max(size, self.peak or 0)

    def _watched(self, root: int) -> str | None:
        limit = self.record["memory"]
        if limit is None:
            return None
        processes = table.descendants(root)
        if sum(each.resident_pages for each in processes) * _PAGE <= limit:
            return None
        # What processes share is counted in each of them above, and once here.
        held = sum(map(_proportional, processes))
        if held <= limit:
            return None
        self._held(held)
        megabytes = held >> 20
        return (
            f"used more than its memory of {self.record['memory_words']} (it held {megabytes} MiB; this node looks "
            f"every {WATCH_S:g} s)"
        )

    def close(self) -> None:
        """Take the last sample, and remove the groups: nothing of the job lives any more."""
        if self.record["used"] is not None:
            self._sample()
        cgroups.remove(self.record["groups"])


def _proportional(process: table.Process) -> int:
    """Bytes of a process, with its part of what it shares with others; without files, which the kernel can drop."""
    path = f"/proc/{process.pid}/smaps_rollup"
    for names in (("Pss_Anon:", "Pss_Shmem:"), ("Pss:",)):
        kilobytes = cgroups.counter(path, names)
        if kilobytes is not None:
            return kilobytes << 10
    return process.resident_pages * _PAGE
