"""Main memory and processes of an attempt: how much it held at most, and its end once that was too much."""

import os

from worker.shim import cgroups, table
from worker.shim.files import Json

#: Names of the failures in `torchyard.failures.fingerprints`.
MEMORY_LIMIT, NODE_MEMORY, PROCESS_LIMIT = "memory-limit", "node-memory", "process-limit"
#: Seconds between two looks at how much is held, where the kernel enforces the limit.
SAMPLE_S = 1.0
#: The same where nobody but the shim does.
WATCH_S = 2.0
#: Processes that the kernel refused an attempt before it is ended: what goes on so long only multiplies.
BOMB = 1000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Memory of one attempt. `record` is what the worker has set up (`worker.limits.node.NodeLimits.create`)."""

    # No dataclass: what those import takes a shim longer to load than all else.
    def __init__(self, record: Json) -> None:
        self.record = record
        #: The most that was seen, in bytes, without the page cache; None: nobody could look.
        self.peak: int | None = None
        self._due = 0.0

    def too_much(self, root: int, now: float) -> tuple[str, str] | None:
        """Return the failure, by name and in words, of processes below `root` that held more than they may or could."""
        if self._counts(self.record["oom"]):
            return self._killed()
        if now < self._due:
            return None
        if self.record["used"] is not None:
            self._due = now + SAMPLE_S
            self._sample()
            return None
        self._due = now + WATCH_S
        return self._watched(root)

    def _killed(self) -> tuple[str, str]:
        """The failure of a job of which the kernel has killed a process."""
        if self._counts(self.record["reached"]):
            self._held(self.record["memory"])
            return MEMORY_LIMIT, self._words()
        self._sample()
        megabytes = (self.peak or 0) >> 20
        return NODE_MEMORY, f"the node ran out of memory and the kernel chose this job, which held {megabytes} MiB"

    def _words(self) -> str:
        return f"used more than its memory of {self.record['memory_words']}"

    @staticmethod
    def _counts(counter: Json | None) -> bool:
        found = cgroups.counter(counter["file"], counter["names"]) if counter is not None else None
        return found is not None and counter is not None and found >= counter["at_least"]

    def _sample(self) -> None:
        used = self.record["used"]
        held = cgroups.counter(used["file"], used["names"])
        if held is not None:
            self._held(held)

    def _held(self, size: int) -> None:
        self.peak = max(size, self.peak or 0)

    def _watched(self, root: int) -> tuple[str, str] | None:
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
        return MEMORY_LIMIT, f"{self._words()} (it held {megabytes} MiB; this node looks every {WATCH_S:g} s)"

    def close(self) -> None:
        """Take the last sample, and remove the groups: nothing of the job lives any more."""
        if self.record["used"] is not None:
            self._sample()
        cgroups.remove(self.record["groups"])


def process_limit(record: Json, at_least: int) -> tuple[str, str] | None:
    """Return the failure of an attempt that the kernel has refused so many processes, by name and in words."""
    counter = record.get("refused")
    refused = cgroups.counter(counter["file"], counter["names"]) if counter else None
    if not refused or refused < at_least:
        return None
    return PROCESS_LIMIT, f"reached its limit of {record['processes']} processes and threads"


def _proportional(process: table.Process) -> int:
    """Bytes of a process, with its part of what it shares with others; without files, which the kernel can drop."""
    path = f"/proc/{process.pid}/smaps_rollup"
    for names in (("Pss_Anon:", "Pss_Shmem:"), ("Pss:",)):
        kilobytes = cgroups.counter(path, names)
        if kilobytes is not None:
            return kilobytes << 10
    return process.resident_pages * _PAGE
