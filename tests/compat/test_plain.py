"""Plain scripts that keep a snapshot of their own, in an environment without anything of ours."""

import re
from pathlib import Path

import pytest

from tests.support import stack, stopping
from tests.support.user import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SNAPSHOT = Path(__file__).parents[2] / "examples" / "frameworks" / "ddp_snapshot.py"
SPAWNS = Path(__file__).parent / "scripts" / "spawn_snapshot.py"
ARGUMENTS = ("--epochs", "60")


def checksum(log: str) -> str:
    """The line that tells the weights."""
    (line,) = re.findall(r"^checksum of the weights.*$", log, re.MULTILINE)
    return str(line)


@pytest.fixture(scope="module")
def by_hand(yard: stack.Stack, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the training ends without the queue."""
    user = User(yard, environment, tmp_path_factory.mktemp("hand"))
    return checksum(user.by_hand("torchrun", "--standalone", "--nproc-per-node=2", user.copy(SNAPSHOT), *ARGUMENTS))


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
        pytest.param(SNAPSHOT, "torchrun", True, marks=pytest.mark.proves("ddp", "live"), id="ddp-live"),
        pytest.param(
            SPAWNS,
            "python",
            False,
            marks=pytest.mark.proves("spawn", "starts", "outputs", "exact resume", "preempted"),
            id="spawn",
        ),
        pytest.param(SPAWNS, "python", True, marks=pytest.mark.proves("spawn", "live"), id="spawn-live"),
    ],
)
def test_it_goes_on_from_its_own_snapshot(user: User, by_hand: str, script: Path, launcher: str, live: bool) -> None:
    user.copy(SNAPSHOT)
    env = {"OMP_NUM_THREADS": "1"}  # as by hand: sums depend on it
    job = user.submit(
        "python", user.copy(script), *ARGUMENTS, live=live, env=env, restartable=True, resources={"gpus": 2}
    )
    assert job.spec["launcher"] == launcher
    log = user.log(stopping.preempted_after(user, job, "epoch 1: "))
    assert "goes on after epoch" in log
    assert checksum(log) == by_hand
    if not live:
        user.written(job, r"snapshot\.pt")
