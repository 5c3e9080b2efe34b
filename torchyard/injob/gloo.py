"""The exit of a process that used gloo.

A thread of gloo drops the tensors of a collective a moment after its result is there. To drop one that Python made it
takes the GIL, and a thread that takes the GIL while the interpreter is finalised aborts the process with "terminate
called without an active exception" (pytorch/pytorch#190489).
"""

from __future__ import annotations

import atexit
import os
import threading
import time

#: Seconds between two looks at the threads.
LOOK_S = 0.001
#: Seconds after which the process ends all the same.
PATIENCE_S = 1.0


def finish_at_exit() -> None:
    """Let gloo's threads drop what they hold before the interpreter is finalised; works on Linux alone."""
    atexit.unregister(wait_for_threads)  # once, however often it is asked for
    atexit.register(wait_for_threads)


def wait_for_threads(seconds: float = PATIENCE_S) -> bool:
    """Wait until no other thread of the process runs; answer whether that came within the time."""
    idle = 0
    deadline = time.monotonic() + seconds
    # A thread that waits for the GIL sleeps like an idle one: it gets it between two looks.
    while idle < 2 and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        idle = 0 if any(map(_runs, _others())) else idle + 1
    return idle == 2


def _others() -> list[str]:
    """The process's other threads. Those of gloo have a name of their own only once they have run."""
    try:
        return [task for task in os.listdir("/proc/self/task") if task != str(threading.get_native_id())]
    except OSError:
        return []


def _runs(task: str) -> bool:
    try:
        with open("/proc/self/task/%s/stat" % task, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False
