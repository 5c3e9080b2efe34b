"""Frameworks, unchanged: curves, checkpoints, stops, and the weights of a run that was never stopped."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.compat.trainings import (
    EXAMPLES,
    Training,
    Undisturbed,
    stops_and_goes_on_exactly,
)
from tests.support import stopping
from tests.support.user import User
from torchyard.spec import Launcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TRANSFORMERS = Training(
    script=EXAMPLES / "huggingface_trainer.py",
    arguments=("--epochs", "8", "--samples", "640"),
    package="transformers",
    metrics=frozenset({"train/loss", "train/learning_rate", "epoch"}),
    steps=80,
)
ACCELERATE = Training(
    script=EXAMPLES / "accelerate_loop.py",
    arguments=("--epochs", "10", "--samples", "512"),
    package="accelerate",
    metrics=frozenset({"train_loss"}),
    steps=80,
    counted="train_loss",
    total=False,
    resume=("--resume_from_checkpoint", "{checkpoint}"),
)
#: Ranks that `accelerate launch` starts are torchrun's too: one is enough under ours.
ACCELERATE_ALONE = replace(ACCELERATE, arguments=("--epochs", "10", "--samples", "256"), ranks=1, gpus=1)

ACCELERATE_LAUNCH = (
    *("accelerate", "launch", "--multi_gpu", "--num_processes", "2"),
    *("--main_process_port", "0", "--mixed_precision", "no"),
)


@pytest.mark.parametrize(
    ("training", "launcher"),
    [
        pytest.param(
            TRANSFORMERS,
            Launcher.TORCHRUN,
            marks=pytest.mark.proves(
                "transformers", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="transformers",
        ),
        pytest.param(
            ACCELERATE_ALONE,
            Launcher.TORCHRUN,
            marks=pytest.mark.proves(
                "accelerate", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="accelerate",
        ),
        pytest.param(
            ACCELERATE,
            ACCELERATE_LAUNCH,
            marks=pytest.mark.proves(
                "accelerate-launch", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="accelerate-launch",
        ),
    ],
)
def test_it_stops_and_goes_on_exactly(
    user: User, undisturbed: Undisturbed, training: Training, launcher: Launcher | Sequence[str]
) -> None:
    stops_and_goes_on_exactly(user, training, launcher, whole=undisturbed(training))


@pytest.mark.proves("accelerate", "outputs")
@pytest.mark.proves("accelerate-launch", "outputs")
def test_what_a_short_training_writes_is_kept(user: User) -> None:
    command = ("accelerate", "launch", "--num_processes", "1", "--mixed_precision", "no")
    words = ("--epochs", "1", "--samples", "64")
    job = user.submit(*command, user.copy(ACCELERATE.script), *words, resources={"gpus": 1})
    user.written(user.succeeds(job), r"states/epoch_0/model\.safetensors")


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(False, marks=pytest.mark.proves("hydra", "starts", "metrics", "outputs"), id="snapshot"),
        pytest.param(True, marks=pytest.mark.proves("hydra", "live", "preempted"), id="live-preempted"),
    ],
)
def test_a_multirun_of_hydra_trains_each_configuration(user: User, live: bool) -> None:
    script = EXAMPLES / "hydra_app.py"
    words = ["python", user.slowed(script) if live else user.copy(script), "--multirun", "lr=0.1,0.01"]
    words += ["steps=80"] if live else []
    job = user.submit(*words, live=live, restartable=live, launcher="python", resources={"gpus": 2})
    if live:
        stopping.preempted_after(user, job, "#0 : lr=0.1")
    log = user.log(user.succeeds(job))
    steps = [*range(0, 80 if live else 50, 10)]
    curves = {name: [step for step, _, _ in points] for name, points in user.series(job).items()}
    assert curves == {"loss": steps, "1/loss": steps}
    for number in (0, 1):
        if live:
            assert list(user.folder.glob(f"multirun/*/*/{number}/model.pt"))
        else:
            user.written(job, rf"multirun/\S+/{number}/\.hydra/config\.yaml")
            user.written(job, rf"multirun/\S+/{number}/model\.pt")
    assert re.findall(r"^lr (\S+): loss .*, in (\d)$", log, re.MULTILINE) == [("0.1", "0"), ("0.01", "1")]
