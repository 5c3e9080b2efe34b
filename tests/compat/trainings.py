"""Trainings that the queue stops: what each leaves, and the weights of a run that was never stopped."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.compat.by_hand import ONE_THREAD
from tests.support import stopping
from tests.support.user import User
from torchyard.api import Job
from torchyard.spec import Launcher

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


@dataclass(frozen=True, kw_only=True)
class Training:
    """A script with its arguments, and what is shown of it."""

    script: Path
    arguments: tuple[str, ...]
    #: What it spends most of its time to load.
    package: str
    #: Ranks that torchrun starts where it is run by hand; 0 of a plain program.
    ranks: int = 2
    gpus: int = 2
    metrics: frozenset[str]
    steps: int
    #: Which of the metrics is reported at each step.
    counted: str = "epoch"
    #: Whether it tells how many steps there will be.
    total: bool = True
    resume: tuple[str, ...] = ()


#: Gives the checksum of the weights to which a training comes that is run by hand, and never stopped.
Undisturbed = Callable[[Training], str]


def checksum(log: str) -> str:
    """What tells the weights."""
    (found,) = re.findall(r"checksum of the weights:? (\S+)", log)
    return str(found)


def stops_and_goes_on_exactly(
    user: User, training: Training, launcher: Launcher | Sequence[str], *, whole: str
) -> None:
    """Has the queue preempt a job; it comes to the weights of a run that was never stopped, `whole`."""
    typed = {"launcher": launcher.value} if isinstance(launcher, Launcher) else {}
    job = user.submit(
        *(["python"] if typed else launcher),
        user.slowed(training.script),
        *training.arguments,
        **typed,
        live=True,
        resources={"gpus": training.gpus},
        resume={"args": training.resume},
        env=ONE_THREAD,
    )
    stopping.preempted(user, job)
    ended = user.succeeds(job)
    _resumed(user, ended, training)
    curves = user.series(ended)
    assert training.metrics <= curves.keys()
    assert max(int(step) for step, _, _ in curves[training.counted]) == training.steps
    assert checksum(user.log(ended)) == whole


def _resumed(user: User, ended: Job, training: Training) -> None:
    step = user.yard.client.attempts(ended.id)[-1].resumed_from_step
    assert step
    assert f"stopped at step {step}" in user.log(ended, attempt=1)
    assert ended.progress is not None
    assert (ended.progress.step, ended.progress.total_steps) == (
        training.steps,
        training.steps if training.total else None,
    )
