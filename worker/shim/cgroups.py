"""An attempt's control groups, as folders of the kernel's: entering, counters, and removal."""

import os
import signal
import time
from collections.abc import Iterable

from worker.shim import table

#: How long a group may need to be empty once its last process was killed.
EMPTY_S = 2.0
_PAUSE_S = 0.02


def enter(groups: Iterable[str], pid: int = 0) -> None:
    """Move a process into the groups, by default this one; what it forks is born there. Raises OSError."""
    for group in groups:
        with open(os.path.join(group, "cgroup.procs"), "w") as file:
            file.write(str(pid))


def counter(path: str, names: Iterable[str]) -> int | None:
    """Return the sum of the named lines (``<name> <number> …``) of a file, or without names the number that it is; None
    when there is none.
    """
    wanted = set(names)
    try:
        with open(path) as file:
            lines = [line.split() for line in file]
        found = [int(words[-1 if not wanted else 1]) for words in lines if words and (not wanted or words[0] in wanted)]
    except (OSError, ValueError, IndexError):
        return None
    return sum(found) if found else None


def remove(groups: Iterable[str], seconds: float = EMPTY_S) -> list[str]:
    """Remove the groups, whose processes are dead or dying; the groups that are still there after so long."""
    deadline = time.monotonic() + seconds
    left = [group for group in groups if not _removed(group)]
    while left and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        left = [group for group in left if not _removed(group)]
    return left


def kill(groups: Iterable[str]) -> bool:
    """Send SIGKILL to every process in the groups; False when there is none."""
    found = members(groups)
    for process in found:
        process.send(signal.SIGKILL)
    return bool(found)


def members(groups: Iterable[str]) -> list[table.Process]:
    """The processes in the groups, as of now."""
    return [process for pid in sorted(_pids(groups)) if (process := table.find(pid)) is not None]


def _pids(groups: Iterable[str]) -> set[int]:
    return {int(pid) for group in groups for folder in _tree(group) for pid in _read(folder)}


def _tree(group: str) -> list[str]:
    """The group and those that a job has made below it, the innermost first."""
    return [folder for folder, _, _ in os.walk(group, topdown=False)]


def _read(group: str) -> list[str]:
    try:
        with open(os.path.join(group, "cgroup.procs")) as file:
            return file.read().split()
    except OSError:
        return []


def _removed(group: str) -> bool:
    for folder in _tree(group):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
