"""The whole embedded stack as a user starts it: `yard up` in a home of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support import wait
from torchyard.api import Job
from torchyard.client.client import Client

YARD = [sys.executable, "-P", "-m", "torchyard.cli.main"]


@dataclass(frozen=True)
class Stack:
    """A running `yard up`."""

    home: Path
    url: str
    supervisor: psutil.Process
    client: Client
    environment: dict[str, str] = field(repr=False)

    def process(self, part: str) -> psutil.Process:
        """The running process of ``service``, ``worker`` or ``redis-server``."""
        return wait.until(lambda: self._find(part), what=f"a {part} process")

    def _find(self, part: str) -> psutil.Process | None:
        for child in self.supervisor.children():
            try:
                words = " ".join(child.cmdline()).split()  # Redis rewrites its own as one string
                if any(word.rpartition("/")[2] == part for word in words):
                    return child
            except psutil.NoSuchProcess:
                continue
        return None

    def kill(self, part: str) -> None:
        """Kill -9, and wait until the supervisor has started another."""
        old = self.process(part)
        os.kill(old.pid, signal.SIGKILL)
        wait.until(lambda: (new := self._find(part)) is not None and new.pid != old.pid, what=f"a new {part}")

    def attempt_folder(self, job_id: str) -> Path:
        """The folder of the job's newest attempt, while it is there."""
        attempts = wait.until(lambda: self.client.attempts(job_id), what="an attempt")
        folder = worker_folder(self.home) / "attempts" / attempts[-1].id
        return wait.until(lambda: folder if folder.exists() else None, what=str(folder))

    def log(self, job: Job, rank: int = 0) -> bytes:
        """What is stored of a rank's log of the newest attempt."""
        return b"".join(self.client.logs(job.id, rank=rank))

    def yard(
        self, *words: str, cwd: Path | None = None, seconds: float = 90, given: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A `yard` command against this stack; `given` is its standard input."""
        return subprocess.run(
            [*YARD, *words],
            env=self.environment,
            cwd=cwd,
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def worker_folder(home: Path) -> Path:
    """Where the worker of a home keeps its attempts: beside it if root has started it, which other accounts reach."""
    return home.with_name(f"{home.name}-worker") if os.geteuid() == 0 else home / "worker"


@contextmanager
def running(
    home: Path, *, slots: int | None = 2, yard: Sequence[str] = YARD, cwd: Path | None = None, **environment: str
) -> Iterator[Stack]:
    """Starts the stack, and ends it with its jobs; `slots` None leaves it to the worker what it offers."""
    env = {**os.environ, "TORCHYARD_HOME": str(home), "TORCHYARD_HEARTBEAT_S": "1", **environment}
    for name in ("TORCHYARD_URL", "TORCHYARD_TOKEN"):
        env.pop(name, None)
    command = [*yard, "up", "--port", "0", "--stop-jobs", *(["--cpu-slots", str(slots)] if slots is not None else [])]
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            assert word == "ready", process.stderr.read() if process.stderr else ""
            with Client(url, (home / "admin.token").read_text().strip()) as client:
                yield Stack(home, url, psutil.Process(process.pid), client, env)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
