"""HyperQueue, as far as it is packaged: the Python package brings server, worker and client, but no ``hq``."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers import install
from benchmarks.peers.bridge import bridge
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import started

VERSION = "0.27.0"


def _python() -> Path:
    return install.environment("hyperqueue", f"hyperqueue=={VERSION}") / "python"


def _installed() -> str:
    _python()
    return VERSION


@contextmanager
def _start(folder: Path) -> Iterator[Client]:
    with (
        started(folder) as processes,
        bridge(processes, _python(), "hyperqueue_client", str(folder / "server")) as client,
    ):
        yield client


PEER = Peer(name="HyperQueue (Python)", install=_installed, start=_start, setting="keeps its queue in memory")
