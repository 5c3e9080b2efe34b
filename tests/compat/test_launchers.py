"""Commands and scripts that start their processes themselves, with the real packages, as they are typed."""

from pathlib import Path

import pytest

from tests.support.user import User
from torchyard.api import Job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPTS = Path(__file__).parent / "scripts"
SPAWNS = Path(__file__).parents[1] / "e2e" / "scripts" / "spawn_ddp.py"


def have_met(user: User, job: Job) -> bool:
    log = user.log(user.succeeds(job))  # of both, whose lines may run into each other
    return all(f"rank {rank} of 2 has met 2" in log for rank in range(2))


@pytest.mark.proves("accelerate-launch", "starts")
def test_accelerate_launch(user: User) -> None:
    script = user.copy(SCRIPTS / "accelerate_ranks.py")
    options = ["--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "--mixed_precision", "no"]
    job = user.submit("accelerate", "launch", *options, script, resources={"gpus": 2})
    assert job.spec["launcher"] == "none"
    assert have_met(user, job)


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(False, marks=pytest.mark.proves("spawn", "starts"), id="snapshot"),
        pytest.param(True, marks=pytest.mark.proves("spawn", "live"), id="live"),
    ],
)
def test_a_script_that_spawns_its_ranks(user: User, live: bool) -> None:
    job = user.submit("python", user.copy(SPAWNS), "2", live=live, resources={"gpus": 2})
    assert job.spec["launcher"] == "python"
    assert have_met(user, job)
