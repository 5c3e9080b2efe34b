"""Processes that a test starts, found by a mark in their environment."""

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support import wait
from worker.monitoring.stacks import PY_SPY

MARK = "LEAK_WATCH_ID"


def ids() -> set[int]:
    """Ids of all processes that there are."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 (once a test, and thrice as fast)


def marked(mark: str, among: Set[int]) -> list[tuple[int, str]]:
    """Process id and command line of every other process that inherited the mark."""
    found = []
    for pid in sorted(among - {os.getpid()}):
        folder = Path("/proc", str(pid))
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((pid, (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


def stacks(mark: str) -> str:
    """What every process that inherited the mark does right now, for people to read."""
    told = []
    for pid, command in marked(mark, ids()):
        command_line = [PY_SPY, "dump", "--native", "--pid", str(pid)]
        done = subprocess.run(command_line, capture_output=True, text=True, check=False)
        told.append(f"{command}\n{done.stdout}{done.stderr}")
    return "\n".join(told)


class Watch:
    """The processes of one test after the other."""

    def __init__(self) -> None:
        self.mark, self.begun = "", time.monotonic()
        self._before = self._seen = ids()

    def begin(self) -> str:
        """Begin with the next test, and return its mark."""
        self.mark, self.begun, self._before = secrets.token_hex(8), time.monotonic(), self._seen
        return self.mark

    def left(self) -> list[tuple[int, str]]:
        """Process id and command line of what the test has left so far."""
        self._seen = ids()
        return marked(self.mark, self._seen - self._before)


@contextmanager
def watch(hangs_s: float) -> Iterator[Watch]:
    """Watch the tests, and print once what the processes of one do that takes longer than that."""
    made, ended = Watch(), threading.Event()

    def tell() -> None:
        told = ""
        while not ended.wait(1):
            if (mark := made.mark) != told and time.monotonic() - made.begun > hangs_s:
                told = mark
                print(stacks(mark), file=sys.stderr)

    thread = threading.Thread(target=tell, name="watch", daemon=True)
    thread.start()
    yield made
    ended.set()
    thread.join()


@contextmanager
def unmarked() -> Iterator[None]:
    """What is started here belongs to the whole run, not to the current test."""
    mark = os.environ.pop(MARK, None)
    try:
        yield
    finally:
        if mark is not None:
            os.environ[MARK] = mark


def of_attempt(attempt: str, **environment: str) -> list[psutil.Process]:
    """Live processes of an attempt whose environment also has these values."""
    wanted = {"TORCHYARD_ATTEMPT_ID": attempt, **environment}
    found = []
    for process in psutil.process_iter():
        try:
            if wanted.items() <= process.environ().items():
                found.append(process)
        except psutil.Error:
            continue
    return found


def rank(attempt: str, number: int) -> psutil.Process:
    """A rank's own process, once there is one; its wrapper is the parent."""

    def programs() -> list[psutil.Process]:
        found = of_attempt(attempt, RANK=str(number))
        wrappers = {process.pid for process in found}
        return [process for process in found if process.ppid() in wrappers]

    (program,) = wait.until(programs, what=f"rank {number}")
    return program
