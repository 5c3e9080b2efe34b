"""Processes of a peer: whatever it starts, and they start, is ended with it."""

import contextlib
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

#: Every process of a peer inherits it, daemons too.
MARK = "TORCHYARD_BENCH_PEER"
GRACE_S = 10.0


class Processes:
    """Daemons and commands of one peer."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self._mark = uuid.uuid4().hex
        # Empty: command lines in Python would compile their modules anew with each call.
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", MARK: self._mark, **variables}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def daemon(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a process that stays; what it says is kept in the folder."""
        with (self.folder / f"{Path(command[0]).name}.out").open("ab") as out:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self._daemons.append(process)
        return process

    def run(self, command: Sequence[str]) -> str:
        """Run a command to its end and return what it printed; raises RuntimeError when it fails."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()[-200:]}")
        return done.stdout

    def succeeds(self, command: Sequence[str]) -> bool:
        """Tell whether a command succeeds."""
        with contextlib.suppress(RuntimeError):
            self.run(command)
            return True
        return False

    def end(self) -> None:
        """End the daemons, then what they leave behind."""
        found = set(self._marked())
        for daemon in self._daemons:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.update(psutil.Process(daemon.pid).children(recursive=True))
            daemon.terminate()
        for daemon in self._daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(GRACE_S)
        over = time.monotonic() + GRACE_S
        while left := [each for each in {*found, *self._marked()} if _runs(each)]:
            if time.monotonic() > over - GRACE_S + 1:
                for process in left:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
            if time.monotonic() > over:
                raise RuntimeError(f"{left} cannot be ended")
            time.sleep(0.05)
        for daemon in self._daemons:
            daemon.wait(GRACE_S)

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self._mark:
                    yield process


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@contextlib.contextmanager
def started(folder: Path, **variables: str) -> Iterator[Processes]:
    """Processes that are ended afterwards."""
    processes = Processes(folder, variables)
    try:
        yield processes
    finally:
        processes.end()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
