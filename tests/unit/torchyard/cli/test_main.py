import pytest

from tests.support.resources import job
from torchyard.api import JobError
from torchyard.cli import common
from torchyard.states import JobState, StopReason


@pytest.mark.parametrize(
    ("state", "error", "stop", "code"),
    [
        (JobState.SUCCEEDED, None, None, 0),
        (JobState.CANCELLED, None, StopReason.CANCEL, 130),
        (JobState.FAILED, JobError(cause="exit", message="", exit_code=7), None, 7),
        (JobState.FAILED, JobError(cause="exit", message="", signal=9), None, 137),
        (JobState.FAILED, JobError(cause="timeout", message="", signal=9), StopReason.TIMEOUT, 124),
        (JobState.FAILED, JobError(cause="unusable", message=""), None, 1),
        (JobState.FAILED, None, None, 1),
    ],
)
def test_exit_codes(state: JobState, error: JobError | None, stop: StopReason | None, code: int) -> None:
    assert common.exit_code(job(state=state, error=error, stop=stop)) == code
