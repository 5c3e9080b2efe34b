"""When a sweep is paused: its first trials all failed for one cause."""

from service.lifecycle import pausing
from service.lifecycle.pausing import EndedTrial
from torchyard.api import JobError
from torchyard.states import JobState


def failed(cause: str = "exit", message: str = "rank 0 exited with code 1") -> EndedTrial:
    return EndedTrial(JobState.FAILED, JobError(cause=cause, message=message))


def test_the_same_cause_so_many_times_is_a_reason() -> None:
    reason = pausing.alike([failed(message="first\nmore"), failed(), failed()], 3)
    assert reason == "the first 3 trials all failed alike: first. Mend that and resume the sweep, or cancel it"
    assert str(pausing.alike([failed()], 1)).startswith("the first trial failed: rank 0")


def test_anything_else_is_not() -> None:
    assert pausing.alike([failed(), failed()], 3) is None
    assert pausing.alike([failed(), failed("oom"), failed()], 3) is None
    assert pausing.alike([failed(), EndedTrial(JobState.SUCCEEDED, None), failed()], 3) is None
    assert pausing.alike([failed(), EndedTrial(JobState.CANCELLED, None), failed()], 3) is None
