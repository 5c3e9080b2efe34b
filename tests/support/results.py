"""What a finished run of the built-in trainer has left with the service."""

import json
from pathlib import Path
from typing import Any

from tests.support.wait import until
from torchyard.client.client import Client


def series(client: Client, job: str, name: str) -> dict[int, float]:
    """The values of a metric, by step; exactly one process has reported it."""
    (found,) = [each for each in client.metrics(job).series if each.name == name]
    return {step: float(value) for step, _, value in found.points}


def proof(client: Client, job: str, folder: Path) -> dict[str, Any]:
    """``strategy.json`` of the job's outputs."""
    found = until(lambda: [each for each in client.outputs(job) if each.name == "strategy.json"], what="the proof")
    content: dict[str, Any] = json.loads(client.download_output(job, found[0], folder).read_text())
    return content
