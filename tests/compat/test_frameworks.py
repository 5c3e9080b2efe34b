"""Frameworks, unchanged: curves, checkpoints, stops, and the weights of a run that was never stopped."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from tests.support import stack, stopping
from tests.support.user import User
from torchyard.api import Job
from torchyard.spec import Launcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


@dataclass(frozen=True, kw_only=True)
class Training:
    """A script, and what starts it where it is never stopped."""

    script: Path
    arguments: tuple[str, ...]
    launcher: Launcher
    metrics: frozenset[str]
    steps: int
    #: A pattern of the file that it leaves in its folder, however long it trains.
    written: str
    #: Which of the metrics is reported at each step.
    counted: str = "epoch"
    #: Whether it tells how many steps there will be.
    total: bool = True
    resume: tuple[str, ...] = ()


LIGHTNING = Training(
    script=EXAMPLES / "lightning_trainer.py",
    arguments=("--devices", "2", "--epochs", "12", "--samples", "1024"),
    launcher=Launcher.PYTHON,
    metrics=frozenset({"train_loss", "val_accuracy", "epoch"}),
    steps=192,
    written=r"model\.pt",
)
#: A plain program is one process; those that Lightning starts itself are shown with launcher python.
LIGHTNING_ALONE = replace(
    LIGHTNING, arguments=("--devices", "1", "--epochs", "6", "--samples", "1024"), launcher=Launcher.NONE
)
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


def checksum(log: str) -> str:
    """What tells the weights."""
    (found,) = re.findall(r"checksum of the weights:? (\S+)", log)
    return str(found)


#: As in all that is compared with it: sums depend on it.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}

Undisturbed = Callable[[Training], tuple[User, Job]]


@pytest.fixture(scope="module")
def undisturbed(yard: stack.Stack, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A job that trains and is never stopped, and its user."""

    @cache
    def run(training: Training) -> tuple[User, Job]:
        user = User(yard, environment, tmp_path_factory.mktemp("undisturbed"))
        words = ("python", user.copy(training.script), *training.arguments)
        job = user.submit(*words, launcher=training.launcher.value, resources={"gpus": 2}, env=_ONE_THREAD)
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
    typed = {"launcher": launcher.value} if isinstance(launcher, Launcher) else {}
    job = user.submit(
        *(["python"] if typed else launcher),
        user.slowed(training.script),
        *training.arguments,
        **typed,
        live=True,
        resources={"gpus": 2},
        resume={"args": training.resume},
        env=_ONE_THREAD,
    )
    stopping.preempted(user, job)
    ended = user.succeeds(job)
    _resumed(user, ended, training)
    curves = user.series(ended)
    assert training.metrics <= curves.keys()
    assert max(int(step) for step, _, _ in curves[training.counted]) == training.steps
    through, never_stopped = undisturbed(training)
    assert checksum(user.log(ended)) == checksum(through.log(never_stopped))


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(LIGHTNING, marks=pytest.mark.proves("lightning-python", "outputs"), id="lightning-python"),
        pytest.param(LIGHTNING_ALONE, marks=pytest.mark.proves("lightning-none", "outputs"), id="lightning-none"),
        pytest.param(TRANSFORMERS, marks=pytest.mark.proves("transformers", "outputs"), id="transformers"),
        pytest.param(ACCELERATE, marks=pytest.mark.proves("accelerate", "outputs"), id="accelerate"),
    ],
)
def test_what_it_writes_is_kept(undisturbed: Undisturbed, training: Training) -> None:
    user, job = undisturbed(training)
    user.written(job, training.written)


@pytest.mark.parametrize(
    ("training", "launcher"),
    [
        pytest.param(LIGHTNING_ALONE, ("python",), id="lightning"),
        pytest.param(TRANSFORMERS, ("torchrun", "--standalone", "--nproc-per-node=2"), id="transformers"),
        pytest.param(ACCELERATE, ("torchrun", "--standalone", "--nproc-per-node=2"), id="accelerate"),
    ],
)
def test_it_comes_to_what_it_comes_to_by_hand(
    undisturbed: Undisturbed, training: Training, launcher: Sequence[str]
) -> None:
    user, job = undisturbed(training)
    typed = user.by_hand(*launcher, training.script.name, *training.arguments)
    assert checksum(typed) == checksum(user.log(job))


@pytest.mark.parametrize(
    ("training", "command"),
    [
        pytest.param(
            LIGHTNING,
            ("torchrun", "--standalone", "--nproc-per-node=1"),
            marks=pytest.mark.proves("lightning-torchrun", "outputs"),
            id="lightning-torchrun",
        ),
        pytest.param(
            ACCELERATE,
            ("accelerate", "launch", "--num_processes", "1", "--mixed_precision", "no"),
            marks=pytest.mark.proves("accelerate-launch", "outputs"),
            id="accelerate-launch",
        ),
    ],
)
def test_what_a_short_training_writes_is_kept(user: User, training: Training, command: Sequence[str]) -> None:
    words = ("--epochs", "1", "--samples", "64")
    job = user.submit(*command, user.copy(training.script), *words, resources={"gpus": 1})
    user.written(user.succeeds(job), training.written)


def _resumed(user: User, ended: Job, training: Training) -> None:
    step = user.yard.client.attempts(ended.id)[-1].resumed_from_step
    assert step
    assert f"stopped at step {step}" in user.log(ended, attempt=1)
    assert ended.progress is not None
    assert (ended.progress.step, ended.progress.total_steps) == (
        training.steps,
        training.steps if training.total else None,
    )


@pytest.mark.proves("pytorch-lightning", "starts", "metrics", "clean stop", "exact resume", "live", "preempted")
def test_lightning_by_its_other_name_with_ranks_that_it_spawns(user: User, undisturbed: Undisturbed) -> None:
    """They come to what ranks come to that are processes of their own."""
    job = user.submit(
        *("python", by_its_other_name(user), *LIGHTNING.arguments, "--strategy", "ddp_spawn"),
        live=True,
        launcher="python",
        resources={"gpus": 2},
        grace=600,
        env=_ONE_THREAD,
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
    user.written(user.succeeds(job), LIGHTNING.written)


def by_its_other_name(user: User) -> str:
    """The script of Lightning with the import that the distribution's other name takes."""
    script = user.folder / user.slowed(LIGHTNING.script)
    script.write_text(script.read_text().replace("import lightning as L", "import pytorch_lightning as L"))
    return script.name


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
