"""Lightning, unchanged: curves, checkpoints, stops, and the weights of a run that was never stopped."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compat.by_hand import ONE_THREAD, ByHand
from tests.compat.test_progress import lines_of, places
from tests.compat.trainings import (
    EXAMPLES,
    Training,
    Undisturbed,
    checksum,
    stops_and_goes_on_exactly,
)
from tests.support import environments, stopping
from tests.support.user import User
from torchyard.spec import Launcher
from worker.progress.run import epochs_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BARS = Path(__file__).parent / "scripts" / "bars_of_lightning.py"
LIGHTNING = Training(
    script=EXAMPLES / "lightning_trainer.py",
    arguments=("--devices", "2", "--epochs", "5", "--samples", "1024"),
    package="lightning",
    metrics=frozenset({"train_loss", "val_accuracy", "epoch"}),
    steps=80,
)
#: A plain program is one process; those that Lightning starts itself are shown with launcher python.
LIGHTNING_ALONE = replace(LIGHTNING, arguments=("--devices", "1", "--epochs", "5", "--samples", "512"), ranks=0)


@pytest.fixture(scope="module")
def environment(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lightning and what it requires: it imports whatever else it knows and finds, which takes as long again."""
    return environments.only(tmp_path_factory.mktemp("user") / "venv", installed, "lightning")


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
    stops_and_goes_on_exactly(user, training, launcher, whole=undisturbed(training))


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
    assert checksum(user.log(ended)) == undisturbed(LIGHTNING)


@pytest.mark.parametrize(
    ("launcher", "spawned"),
    [
        pytest.param(
            Launcher.PYTHON, False, marks=pytest.mark.proves("lightning-python", "outputs"), id="lightning-python"
        ),
        pytest.param(Launcher.NONE, False, marks=pytest.mark.proves("lightning-none", "outputs"), id="lightning-none"),
        pytest.param(
            Launcher.PYTHON, True, marks=pytest.mark.proves("pytorch-lightning", "outputs"), id="pytorch-lightning"
        ),
    ],
)
def test_what_a_short_training_writes_is_kept(user: User, launcher: Launcher, spawned: bool) -> None:
    script = by_its_other_name(user) if spawned else user.copy(LIGHTNING.script)
    words = ["--devices", "1", "--epochs", "1", "--samples", "64"] + (["--strategy", "ddp_spawn"] if spawned else [])
    user.at_full_speed()
    job = user.submit("python", script, *words, launcher=launcher.value, resources={"gpus": 1})
    user.written(user.succeeds(job), r"model\.pt")


def by_its_other_name(user: User) -> str:
    """The script of Lightning with the import that the distribution's other name takes."""
    script = user.folder / user.slowed(LIGHTNING.script)
    script.write_text(script.read_text().replace("import lightning as L", "import pytorch_lightning as L"))
    return script.name


def test_its_bars_are_the_runs_where_its_epochs_are_told(by_hand: ByHand, tmp_path: Path) -> None:
    """tqdm's is an epoch's, and tells none of their number; rich's is written once, at the end, without a terminal."""
    arguments = ("--epochs", "3")
    lines = lines_of(by_hand(tmp_path, BARS, *arguments, load=["lightning"]))
    trained = lines.index("trained")
    by_tqdm, by_rich = lines[:trained], lines[trained + 1 :]
    found = places(by_tqdm, epochs_of(arguments))
    assert {(16, 48), (32, 48), (48, 48)} <= set(found)
    assert found == sorted(found)
    assert places(by_tqdm) == []
    end = next(number for number, line in enumerate(by_rich) if "`Trainer.fit` stopped" in line)
    assert places(by_rich[: end + 1]) == []
    assert [step == total for step, total in places(by_rich)] == [True]
