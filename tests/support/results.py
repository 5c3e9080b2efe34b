"""What a finished run has left with the service."""

import json
from pathlib import Path
from typing import Any

from tests.support.wait import until
from torchyard.api import Job
from torchyard.client.client import Client


def settled(client: Client, job: str, seconds: float = 180) -> Job:
    """The job once it has ended and all of its logs, points and files are with the service.

    A job's end is told within two seconds, even if a busy node has not brought all of them by then.
    """
    ended = client.wait(job, timeout_s=seconds)
    until(lambda: all(each.settled for each in client.attempts(job)), seconds=seconds, what=f"all that {job} has left")
    return ended


def series(client: Client, job: str, name: str) -> dict[int, float]:
    """The values of a metric, by step; exactly one process has reported it."""
    (found,) = [each for each in client.metrics(job).series if each.name == name]
    return {step: float(value) for step, _, value in found.points}


def proof(client: Client, job: str, folder: Path) -> dict[str, Any]:
    """``strategy.json`` of the job's outputs."""
    found = until(lambda: [each for each in client.outputs(job) if each.name == "strategy.json"], what="the proof")
    content: dict[str, Any] = json.loads(client.download_output(job, found[0], folder).read_text())
    return content
