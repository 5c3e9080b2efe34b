"""A rank of the built-in trainer that is killed or hangs, through the queue: the job fails with the reason, in time."""

import signal
from typing import Any

import psutil
import pytest

from tests.support import processes, wait
from tests.support.stack import Stack
from torchyard import fingerprints
from torchyard.api import Job, JobError
from torchyard.states import JobState
from trainer import absence

pytestmark = pytest.mark.e2e

#: Seconds that ranks wait for one that hangs; by default it is 600.
TIMEOUT_S = 3
#: What may pass between the end of the ranks' patience and that of the job, on a busy machine.
MARGIN_S = 20
RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [32]},
    "data": {"name": "synthetic", "samples": 64, "validation_samples": 8, "shape": [8]},
    "strategy": "ddp",
    "epochs": 1_000_000,
    "evaluate_every": 1_000_000,
    "checkpoint_every": 1_000_000,
    "batch_size": 8,
    "log_every": 1,
    "timeout": TIMEOUT_S,
}


def _training(yard: Stack) -> Job:
    """A run of two ranks that has begun to sum gradients, and would go on for hours."""
    job = yard.client.submit({"resources": {"gpus": 2}, "recipe": RECIPE})
    wait.until(lambda: yard.client.metrics(job.id).series, seconds=180, what="the first steps")
    return job


def _program(attempt: str, rank: int) -> psutil.Process:
    """The rank's own process; its wrapper is the parent."""
    found = processes.of_attempt(attempt, RANK=str(rank))
    wrappers = {process.pid for process in found}
    (program,) = [process for process in found if process.ppid() in wrappers]
    return program


def _lost(yard: Stack, how: signal.Signals) -> JobError:
    """Why the job has failed whose rank 1 was sent the signal; fails where it hangs."""
    job = _training(yard)
    attempt = yard.client.attempts(job.id)[-1].id
    _program(attempt, 1).send_signal(how)
    ended = yard.client.wait(job.id, timeout_s=TIMEOUT_S + absence.ROLL_CALL_S + MARGIN_S)
    assert ended.state is JobState.FAILED
    assert ended.devices == []
    assert not processes.of_attempt(attempt)
    assert ended.error is not None
    return ended.error


def test_a_killed_rank_is_the_reason(yard: Stack) -> None:
    error = _lost(yard, signal.SIGKILL)
    assert (error.rank, error.signal) == (1, signal.SIGKILL)
    assert error.message.startswith("rank 1 was killed by SIGKILL (signal 9)")


def test_a_rank_that_hangs_is_named_by_the_one_that_waited(yard: Stack) -> None:
    error = _lost(yard, signal.SIGSTOP)
    assert (error.rank, error.exit_code) == (0, 1)
    assert error.message == f"rank 0 exited with code 1: {fingerprints.advice(fingerprints.LOST_RANK)}"
    assert error.traceback is not None
    assert "PeerError: rank 1 no longer answers" in error.traceback
