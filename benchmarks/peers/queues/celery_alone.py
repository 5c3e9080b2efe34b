"""Celery with nothing around it: a task that runs a command, on the Redis that TorchYard brings."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from celery import Celery

from benchmarks.peers import polling
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import started
from torchyard.stack.redis import find_executable

ROOT = Path(__file__).parents[3]
TASK = "run"


def application(folder: Path) -> Celery:
    """Return the application of both sides; each command is acknowledged late, as one that must not get lost is."""
    url = f"redis+socket://{folder}/redis.sock"
    app = Celery("bench", broker=url, backend=url)
    app.conf.update(
        task_acks_late=True, worker_prefetch_multiplier=1, worker_hijack_root_logger=False, broker_connection_retry=True
    )

    @app.task(name=TASK)
    def run(command: list[str]) -> int:
        return subprocess.run(command, check=True).returncode

    return app


class Sender:
    """The client in this process."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        del slots  # it knows of none: two ranks take one of the two processes
        return str(self._app.send_task(TASK, (list(command),)).id)

    def wait(self, job: str) -> None:
        self._app.AsyncResult(job).get(timeout=120)


@contextmanager
def _start(folder: Path) -> Iterator[Client]:
    with started(folder, BENCH_FOLDER=str(folder), PYTHONPATH=str(ROOT)) as processes:
        door = folder / "redis.sock"
        processes.daemon([find_executable(), "--port", "0", "--unixsocket", str(door), "--appendonly", "yes"])
        polling.until_up(door.exists)
        module = "benchmarks.peers.queues.celery_worker"
        options = ["--concurrency", "2", "--loglevel", "warning", "--without-gossip", "--without-mingle"]
        processes.daemon([sys.executable, "-m", "celery", "-A", module, "worker", *options])
        app = application(folder)
        polling.until_up(lambda: bool(app.control.ping(timeout=0.5)))
        try:
            yield Sender(app)
        finally:
            app.close()


PEER = Peer(
    name="Celery alone",
    install=lambda: metadata.version("celery"),
    start=_start,
    setting="task that runs a command; Redis that writes each second",
)
