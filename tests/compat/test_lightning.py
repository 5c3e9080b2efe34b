"""Lightning, unchanged: curves, checkpoints, stops, and the weights of a run that was never stopped."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.compat.trainings import (
    EXAMPLES,
    ONE_THREAD,
    Training,
    checksum,
    stops_and_goes_on_exactly,
)
from tests.support import environments, stopping
from tests.support.stack import Stack
from tests.support.user import User
from torchyard.api import Job
from torchyard.spec import Launcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LIGHTNING = Training(
    script=EXAMPLES / "lightning_trainer.py",
    arguments=("--devices", "2", "--epochs", "5", "--samples", "1024"),
    metrics=frozenset({"train_loss", "val_accuracy", "epoch"}),
    steps=80,
)
#: A plain program is one process; those that Lightning starts itself are shown with launcher python.
LIGHTNING_ALONE = replace(LIGHTNING, arguments=("--devices", "1", "--epochs", "5", "--samples", "512"))
#: What starts each where it is never stopped.
LAUNCHERS = {LIGHTNING: Launcher.PYTHON, LIGHTNING_ALONE: Launcher.NONE}
#: The file that it leaves in its folder, however long it trains.
WRITTEN = r"model\.pt"

#: Gives a job that has trained and was never stopped, and its user.
Undisturbed = Callable[[Training], tuple[User, Job]]


@pytest.fixture(scope="module")
def environment(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lightning and what it requires: it imports whatever else it knows and finds, which takes as long again."""
    return environments.only(tmp_path_factory.mktemp("user") / "venv", environment, "lightning")


@pytest.fixture(scope="module")
def undisturbed(yard: Stack, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A job that trains and is never stopped, and its user: one of each training."""

    @cache
    def run(training: Training) -> tuple[User, Job]:
        user = User(yard, environment, tmp_path_factory.mktemp("undisturbed"))
        words = ("python", user.copy(training.script), *training.arguments)
        job = user.submit(*words, launcher=LAUNCHERS[training].value, resources={"gpus": 2}, env=ONE_THREAD)
        return user, user.succeeds(job)

    return run


@pytest.mark.parametrize(
    ("training", "launcher"),
    [
        pytest.param(
            LIGHTNING,
            Launcher.TORCHRUN,
            marks=pytest.mark.proves(
                "lightning-torchrun", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="lightning-torchrun",
        ),
        pytest.param(
            LIGHTNING,
            Launcher.PYTHON,
            marks=pytest.mark.proves(
                "lightning-python", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="lightning-python",
        ),
        pytest.param(
            LIGHTNING_ALONE,
            Launcher.NONE,
            marks=pytest.mark.proves(
                "lightning-none", "starts", "metrics", "clean stop", "exact resume", "live", "preempted"
            ),
            id="lightning-none",
        ),
    ],
)
def test_it_stops_and_goes_on_exactly(
    user: User, undisturbed: Undisturbed, training: Training, launcher: Launcher
) -> None:
    through, never_stopped = undisturbed(training)
    stops_and_goes_on_exactly(user, training, launcher, whole=checksum(through.log(never_stopped)))


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(LIGHTNING, marks=pytest.mark.proves("lightning-python", "outputs"), id="lightning-python"),
        pytest.param(LIGHTNING_ALONE, marks=pytest.mark.proves("lightning-none", "outputs"), id="lightning-none"),
    ],
)
def test_what_it_writes_is_kept(undisturbed: Undisturbed, training: Training) -> None:
    user, job = undisturbed(training)
    user.written(job, WRITTEN)


def test_it_comes_to_what_it_comes_to_by_hand(undisturbed: Undisturbed) -> None:
    user, job = undisturbed(LIGHTNING_ALONE)
    typed = user.by_hand("python", LIGHTNING_ALONE.script.name, *LIGHTNING_ALONE.arguments)
    assert checksum(typed) == checksum(user.log(job))


@pytest.mark.proves("pytorch-lightning", "starts", "metrics", "clean stop", "exact resume", "live", "preempted")
def test_lightning_by_its_other_name_with_ranks_that_it_spawns(user: User, undisturbed: Undisturbed) -> None:
    """They come to what ranks come to that are processes of their own."""
    job = user.submit(
        *("python", by_its_other_name(user), *LIGHTNING.arguments, "--strategy", "ddp_spawn"),
        live=True,
        launcher="python",
        resources={"gpus": 2},
        grace=600,
        env=ONE_THREAD,
    )
    stopping.preempted(user, job)
    ended = user.succeeds(job)
    step = user.yard.client.attempts(job.id)[-1].resumed_from_step
    assert f"stopped at step {step}" in user.log(job, attempt=1)
    assert user.series(ended).keys() >= LIGHTNING.metrics
    through, never_stopped = undisturbed(LIGHTNING)
    assert checksum(user.log(ended)) == checksum(through.log(never_stopped))


@pytest.mark.proves("pytorch-lightning", "outputs")
def test_what_ranks_write_that_it_spawns_is_kept(user: User) -> None:
    words = ("--devices", "1", "--epochs", "1", "--samples", "64", "--strategy", "ddp_spawn")
    job = user.submit("python", by_its_other_name(user), *words, launcher="python", resources={"gpus": 1})
    user.at_full_speed()
    user.written(user.succeeds(job), WRITTEN)


def by_its_other_name(user: User) -> str:
    """The script of Lightning with the import that the distribution's other name takes."""
    script = user.folder / user.slowed(LIGHTNING.script)
    script.write_text(script.read_text().replace("import lightning as L", "import pytorch_lightning as L"))
    return script.name
