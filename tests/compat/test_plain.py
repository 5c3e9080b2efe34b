"""A plain script under torchrun, in an environment without anything of ours."""

from pathlib import Path

import pytest

from tests.support.user import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(False, marks=pytest.mark.proves("ddp", "starts"), id="snapshot"),
        pytest.param(True, marks=pytest.mark.proves("ddp", "live"), id="live"),
    ],
)
def test_a_plain_ddp_script_trains(user: User, live: bool) -> None:
    script = user.copy(EXAMPLES / "plain_ddp.py")
    job = user.submit("python", script, "--epochs", "1", live=live, resources={"gpus": 2})
    user.succeeds(job)
    assert "epoch 1/1" in user.log(job)
