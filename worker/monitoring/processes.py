"""The node's process table: who this machine is, and the sweep by attempt id."""

import os
import signal
import time
from pathlib import Path

from torchyard.ids import AttemptId
from torchyard.injob import layout
from worker.attempts.folder import is_attempt_id
from worker.shim import table

_PAUSE_S = 0.02


def boot_id() -> str:
    """Return the id of this boot: with the next one nothing of before is alive."""
    return table.boot_id()


def pid_namespace() -> str:
    """A sweep sees only the processes of its own namespace."""
    return str(Path("/proc/self/ns/pid").readlink())


def open_process(pid: int, start_ticks: int) -> int | None:
    """A pidfd, readable once the process has ended; None when it has, or the pid is another's by now."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    process = table.find(pid)
    if process is None or process.dead or process.start_ticks != start_ticks:
        os.close(descriptor)
        return None
    return descriptor


def of_attempt(attempt_id: AttemptId) -> list[table.Process]:
    """The living processes that carry an attempt's id in their environment, without the caller and its parents."""
    mark = f"{layout.ATTEMPT_ID}={attempt_id}".encode()
    everyone = {process.pid: process for process in table.everyone()}
    own, pid = set(), os.getpid()
    while pid in everyone:
        own.add(pid)
        pid = everyone[pid].parent
    others = (process for pid, process in everyone.items() if pid not in own)
    return [process for process in others if not process.dead and mark in process.environment()]


def attempts_alive(attempts: Path) -> set[AttemptId]:
    """Ids of this home's attempts of which the process table shows a living process.

    What a process says of itself is its user's to write: a name that is no id belongs to no attempt.
    """
    name = f"{layout.ATTEMPT_DIR}=".encode()
    carried = {
        entry.removeprefix(name).decode(errors="replace")
        for process in table.everyone()
        if not process.dead
        for entry in process.environment()
        if entry.startswith(name)
    }
    folders = (Path(folder) for folder in carried)
    return {
        AttemptId(folder.name) for folder in folders if is_attempt_id(folder.name) and _same(folder.parent, attempts)
    }


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def sweep(attempt_id: AttemptId, seconds: float = 60.0) -> list[int]:
    """Kill every process of an attempt; the pids of those that are still there after so long, at best none."""
    deadline = time.monotonic() + seconds
    while left := of_attempt(attempt_id):
        for process in left:
            process.send(signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)
    return [process.pid for process in left]
