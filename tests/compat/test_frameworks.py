"""Frameworks, unchanged: curves, checkpoints, stops, and the weights of a run that was never stopped."""

import re
from collections.abc import Sequence

import pytest

from tests.compat.trainings import (
    EXAMPLES,
    Training,
    Undisturbed,
    checksum,
    stops_and_goes_on_exactly,
)
from tests.support import stopping
from tests.support.user import User
from torchyard.spec import Launcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TRANSFORMERS = Training(
    script=EXAMPLES / "huggingface_trainer.py",
    arguments=("--epochs", "20", "--samples", "640"),
    launcher=Launcher.TORCHRUN,
    metrics=frozenset({"train/loss", "train/learning_rate", "epoch"}),
    steps=200,
    written=r"out/checkpoint-\d+/trainer_state\.json",
)
ACCELERATE = Training(
    script=EXAMPLES / "accelerate_loop.py",
    arguments=("--epochs", "16", "--samples", "1024"),
    launcher=Launcher.TORCHRUN,
    metrics=frozenset({"train_loss"}),
    steps=256,
    written=r"states/epoch_\d+/model\.safetensors",
    counted="train_loss",
    total=False,
    resume=("--resume_from_checkpoint", "{checkpoint}"),
)

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
            ACCELERATE,
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
    stops_and_goes_on_exactly(user, undisturbed, training, launcher)


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(TRANSFORMERS, marks=pytest.mark.proves("transformers", "outputs"), id="transformers"),
        pytest.param(ACCELERATE, marks=pytest.mark.proves("accelerate", "outputs"), id="accelerate"),
    ],
)
def test_what_it_writes_is_kept(undisturbed: Undisturbed, training: Training) -> None:
    user, job = undisturbed(training)
    user.written(job, training.written)


@pytest.mark.parametrize(
    "training", [pytest.param(TRANSFORMERS, id="transformers"), pytest.param(ACCELERATE, id="accelerate")]
)
def test_it_comes_to_what_it_comes_to_by_hand(undisturbed: Undisturbed, training: Training) -> None:
    user, job = undisturbed(training)
    launcher = ("torchrun", "--standalone", "--nproc-per-node=2")
    typed = user.by_hand(*launcher, training.script.name, *training.arguments)
    assert checksum(typed) == checksum(user.log(job))


@pytest.mark.proves("accelerate-launch", "outputs")
def test_what_a_short_training_writes_is_kept(user: User) -> None:
    command = ("accelerate", "launch", "--num_processes", "1", "--mixed_precision", "no")
    words = ("--epochs", "1", "--samples", "64")
    job = user.submit(*command, user.copy(ACCELERATE.script), *words, resources={"gpus": 1})
    user.written(user.succeeds(job), ACCELERATE.written)


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
    words += ["steps=200"] if live else []
    job = user.submit(*words, live=live, restartable=live, launcher="python", resources={"gpus": 2})
    if live:
        stopping.preempted_after(user, job, "#0 : lr=0.1")
    log = user.log(user.succeeds(job))
    steps = [*range(0, 200 if live else 50, 10)]
    curves = {name: [step for step, _, _ in points] for name, points in user.series(job).items()}
    assert curves == {"loss": steps, "1/loss": steps}
    for number in (0, 1):
        if live:
            assert list(user.folder.glob(f"multirun/*/*/{number}/model.pt"))
        else:
            user.written(job, rf"multirun/\S+/{number}/\.hydra/config\.yaml")
            user.written(job, rf"multirun/\S+/{number}/model\.pt")
    assert re.findall(r"^lr (\S+): loss .*, in (\d)$", log, re.MULTILINE) == [("0.1", "0"), ("0.01", "1")]
