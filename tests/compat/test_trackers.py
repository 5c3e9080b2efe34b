"""Jobs that log with trackers of their own show their curves, with no changed line."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.user import User
from torchyard.api import Job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPTS = Path(__file__).parent / "scripts"
TRACKERS = ["tensorboard", "mlflow", "wandb", "trackio"]
#: More than any curve here has: none is thinned.
MAX_POINTS = 100_000
OFFLINE = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}

Curves = dict[str, list[tuple[int, float]]]


def test_every_point_of_every_tracker_is_there(user: User) -> None:
    log = user.folder / "logged.json"
    script = user.copy(SCRIPTS / "log_everywhere.py")
    job = user.submit("python", script, str(log), *TRACKERS, launcher="python", env=OFFLINE, resources={"gpus": 0})
    user.succeeds(job)
    expected = json.loads(log.read_text())
    assert set(expected) == set(TRACKERS)
    wanted = {name: points for tracker in TRACKERS for name, points in expected[tracker].items()}
    wanted |= {name: as_floats(points) for name, points in expected["tensorboard"].items() if name != "tb/double"}
    found = curves(user, job)
    assert found.keys() == wanted.keys()
    assert {name: words(points) for name, points in found.items()} == {n: words(p) for n, p in wanted.items()}


def curves(user: User, job: Job) -> Curves:
    """A job's curves as steps and numbers."""
    found = user.yard.client.metrics(job.id, max_points=MAX_POINTS).series
    return {series.name: [(step, float(value)) for step, _, value in series.points] for series in found}


def as_floats(points: list[Any]) -> list[tuple[int, float]]:
    """TensorBoard keeps numbers of 32 bits."""
    return [(step, as_float(value)) for step, value in points]


def as_float(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def words(points: list[Any]) -> list[str]:
    """Points that can be compared, not-a-number included."""
    return [f"{step} {float(value)!r}" for step, value in points]
