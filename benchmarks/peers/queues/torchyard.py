"""TorchYard itself: through its REST API on one connection, and through its command line."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from pathlib import Path

from benchmarks.first_step import THREADS, until_warm
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import Processes, started
from benchmarks.stack import Stack, embedded

YARD = (sys.executable, "-m", "torchyard.cli.main")


class Rest:
    """One keep-alive connection."""

    def __init__(self, stack: Stack, folder: Path, *, warm: bool) -> None:
        self._stack, self._folder, self._warm = stack, folder, warm
        self._connection = stack.connect()
        if warm:
            until_warm(stack, self._connection, folder)

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        return self._stack.submit(self._connection, command=list(command), resources={"gpus": slots})

    def wait(self, job: str) -> None:
        ended = self._stack.finished(self._connection, job)
        if ended["state"] != "succeeded":
            raise RuntimeError(f"job {job}: {ended['error']}")

    def train(self, script: Path, moments: Path) -> str:
        return self._stack.submit(
            self._connection,
            command=["python", script.name, str(moments)],
            launcher="torchrun",
            live=str(self._folder),
            python=sys.executable,
            resources={"gpus": 2},
            env=THREADS,
            warm_start=self._warm,
        )


class CommandLine:
    """A process of `yard` for each submission, in the folder itself."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        return self._run("--launcher", "none", "--gpus", str(slots), "--", *command)

    def train(self, script: Path, moments: Path) -> str:
        options = ("--launcher", "torchrun", "--gpus", "2", "--no-warm-start", "--env", "OMP_NUM_THREADS=1")
        return self._run(*options, "--python", sys.executable, "--", "python", script.name, str(moments))

    def wait(self, job: str) -> None:
        self._processes.run([*YARD, "wait", job])

    def _run(self, *words: str) -> str:
        return self._processes.run([*YARD, "run", "--detach", "--live", *words]).split()[-1]


@contextmanager
def _rest(folder: Path, *, warm: bool) -> Iterator[Client]:
    with embedded() as stack:
        yield Rest(stack, folder, warm=warm)


@contextmanager
def _command_line(folder: Path) -> Iterator[Client]:
    with embedded() as stack, started(folder, TORCHYARD_HOME=str(stack.home)) as processes:
        yield CommandLine(processes)


def _warm(folder: Path) -> AbstractContextManager[Client]:
    return _rest(folder, warm=True)


def _cold(folder: Path) -> AbstractContextManager[Client]:
    return _rest(folder, warm=False)


def _version() -> str:
    return metadata.version("torchyard")


PEERS = (
    Peer(name="TorchYard (REST)", install=_version, start=_cold, setting="first DDP step executed"),
    Peer(name="TorchYard (REST, warm)", install=_version, start=_warm, setting="first DDP step forked"),
    Peer(name="TorchYard (yard)", install=_version, start=_command_line, setting="first DDP step executed"),
)
