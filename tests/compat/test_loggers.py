"""Frameworks that log on top of trackers: every point is shown, and nothing twice."""

import json
from pathlib import Path

import pytest

from tests.compat.test_progress import lines_of, places
from tests.compat.test_trackers import OFFLINE, curves
from tests.support import wait
from tests.support.user import User
from torchyard.api import Job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPTS = Path(__file__).parent / "scripts"
EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


def given(user: User, job: Job) -> dict[str, list[tuple[int, float]]]:
    """What the script says that it has logged."""
    (line,) = [line for line in user.log(job).splitlines() if line.startswith("given ")]
    return {name: [(step, value) for step, value in points] for name, points in json.loads(line[6:]).items()}


def train(user: User, script: str, example: str, *words: str, launcher: str = "python", gpus: int = 0) -> Job:
    user.copy(EXAMPLES / example)
    command = ["python", user.copy(SCRIPTS / script), *words]
    return user.succeeds(user.submit(*command, launcher=launcher, env=OFFLINE, resources={"gpus": gpus}))


@pytest.mark.proves("lightning-torchrun", "outputs")
def test_lightnings_loggers(user: User) -> None:
    """The callback counts steps that are done, the loggers from 0; what is logged to them alone stays as it is."""
    job = train(user, "lightning_loggers.py", "lightning_trainer.py", launcher="torchrun", gpus=1)
    found, logged = curves(user, job), given(user, job)
    assert found.keys() == logged.keys() | {"hp_metric"}
    assert found["own"] == logged["own"] == [(8, 0.0), (16, 2.0), (24, 4.0)]
    for name in ("train_loss", "val_accuracy"):
        assert found[name] == [(step + 1, value) for step, value in logged[name]]
    assert found["lr-Adam"] == [(step + 1, pytest.approx(value)) for step, value in logged["lr-Adam"]]
    assert [step for step, _ in found["epoch"]] == list(range(25))
    user.written(job, r"logs/\S+/metrics\.csv")


@pytest.mark.proves("transformers", "outputs")
def test_reports_bars_and_checkpoints_of_the_trainer_of_transformers(user: User) -> None:
    """Its bars are the run's; its evaluations have bars of their own, in between."""
    job = train(user, "trainer_loggers.py", "huggingface_trainer.py", "tensorboard", "mlflow", "trackio", "wandb")
    wait.until(lambda: curves(user, job).get("progress", [])[-1:] == [(8, 100.0)], what="the end of the bars")
    found, logged = curves(user, job), given(user, job)
    logged.pop("epoch")
    assert {name: found.pop(name) for name in map(reported, logged)} == {
        reported(name): points for name, points in logged.items()
    }
    assert found.keys() == {"epoch", "train/global_step", "progress"}
    assert [step for step, _ in found["epoch"]] == list(range(1, 9))
    told = places(lines_of(user.log(job)))
    assert (told[0], told[-1]) == ((0, 8), (8, 8))
    assert told == [(step, 8) for step in sorted(step for step, _ in told)]
    user.written(job, r"out/checkpoint-\d+/trainer_state\.json")


def reported(name: str) -> str:
    """As most trackers are given it by the Trainer."""
    return f"eval/{name[5:]}" if name.startswith("eval_") else f"train/{name}"
