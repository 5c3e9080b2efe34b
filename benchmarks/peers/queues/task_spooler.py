"""task-spooler (``tsp``): a queue of one user's commands, in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers import install
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import Processes, started


class CommandLine:
    """``tsp``; its server starts with the first job."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        return self._processes.run(["tsp", "-N", str(slots), *command]).strip()

    def wait(self, job: str) -> None:
        self._processes.run(["tsp", "-w", job])


@contextmanager
def _start(folder: Path) -> Iterator[Client]:
    with started(folder, TS_SOCKET=str(folder / "socket"), TS_SLOTS="2", TMPDIR=str(folder)) as processes:
        yield CommandLine(processes)
        processes.run(["tsp", "-K"])


PEER = Peer(name="task-spooler (tsp)", install=lambda: install.debian("task-spooler", "tsp"), start=_start)
