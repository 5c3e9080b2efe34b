"""Plain scripts that keep a snapshot of their own, in an environment without anything of ours."""

from pathlib import Path
from typing import Any

import pytest

from tests.compat.by_hand import ONE_THREAD
from tests.compat.trainings import EXAMPLES, Training, Undisturbed, checksum
from tests.support import stopping
from tests.support.user import User
from torchyard.api import Job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SNAPSHOT = EXAMPLES / "ddp_snapshot.py"
SPAWNS = Path(__file__).parent / "scripts" / "spawn_snapshot.py"
ARGUMENTS = ("--epochs", "8", "--samples", "640")
TRAINING = Training(script=SNAPSHOT, arguments=ARGUMENTS, package="torch", metrics=frozenset(), steps=80)


@pytest.mark.parametrize(
    ("script", "launcher", "live"),
    [
        pytest.param(
            SNAPSHOT,
            "torchrun",
            False,
            marks=pytest.mark.proves("ddp", "starts", "outputs", "exact resume", "preempted"),
            id="ddp",
        ),
        pytest.param(
            SPAWNS,
            "python",
            True,
            marks=pytest.mark.proves("spawn", "starts", "exact resume", "live", "preempted"),
            id="spawn-live",
        ),
    ],
)
def test_it_goes_on_from_its_own_snapshot(
    user: User, undisturbed: Undisturbed, script: Path, launcher: str, live: bool
) -> None:
    job = train(user, script, *ARGUMENTS, slowed=True, live=live, restartable=True)
    assert job.spec["launcher"] == launcher
    log = user.log(stopping.preempted_after(user, job, "epoch 1: "))
    assert "goes on after epoch" in log
    assert checksum(log) == undisturbed(TRAINING)
    if not live:
        user.written(job, r"snapshot\.pt")


def train(user: User, script: Path, *words: str, slowed: bool = False, gpus: int = 2, **fields: Any) -> Job:
    (user.slowed if slowed else user.copy)(SNAPSHOT)
    if script is not SNAPSHOT:
        user.copy(script)
    env = ONE_THREAD | {"PROCESSES": str(gpus)}
    return user.submit("python", script.name, *words, env=env, resources={"gpus": gpus}, **fields)


@pytest.mark.proves("spawn", "outputs")
def test_the_snapshot_of_ranks_that_it_spawns_is_kept(user: User) -> None:
    user.written(user.succeeds(train(user, SPAWNS, "--epochs", "1", gpus=1)), r"snapshot\.pt")


@pytest.mark.proves("ddp", "live")
def test_it_leaves_its_snapshot_in_its_own_folder(user: User) -> None:
    user.succeeds(train(user, SNAPSHOT, "--epochs", "1", gpus=1, live=True))
    assert (user.folder / "snapshot.pt").is_file()
