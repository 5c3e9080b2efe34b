"""The embedded stack for the length of a benchmark: `yard up` in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.http import KeepAliveConnection


@dataclass(frozen=True)
class Stack:
    """A running stack and the administrator's way in."""

    host: str
    port: int
    token: str
    home: Path
    began: float
    """When it was started, as `time.time()` has it."""

    def connect(self, token: str | None = None) -> KeepAliveConnection:
        """A keep-alive connection that is signed in."""
        return KeepAliveConnection(self.host, self.port, token or self.token)

    def submit(self, connection: KeepAliveConnection, **spec: object) -> str:
        """Submits a job without GPUs' worth of work and answers its id."""
        body = {"name": "bench", "launcher": "none", "resources": {"gpus": 1}, **spec}
        return str(connection.json("POST", "/api/v1/jobs", body)["id"])

    def finished(self, connection: KeepAliveConnection, job: str) -> dict[str, object]:
        """The job, once it has ended."""
        while True:
            shown = connection.json("GET", f"/api/v1/jobs/{job}?wait=60")
            if shown["state"] in ("succeeded", "failed", "cancelled"):
                return shown


@contextmanager
def embedded(slots: int = 2) -> Iterator[Stack]:
    """Starts `yard up` on a free port and ends it afterwards."""
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        environment = {**os.environ, "TORCHYARD_HOME": folder}
        command = [sys.executable, "-m", "torchyard.cli.main", "up", "--port", "0", "--cpu-slots", str(slots)]
        command.append("--stop-jobs")
        began = time.time()
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            if ready[:1] != ["ready"]:
                raise RuntimeError(f"the stack did not start; see {folder}/logs")
            address = urlsplit(ready[1])
            token = (Path(folder) / "admin.token").read_text().strip()
            yield Stack(str(address.hostname), int(address.port or 0), token, Path(folder), began)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def node_token(stack: Stack) -> str:
    """The token of the embedded worker."""
    return (stack.home / "node.token").read_text().strip()


def dumps(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()
