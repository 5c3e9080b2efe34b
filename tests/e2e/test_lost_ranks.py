"""Ranks that hang, through the queue: the job fails in time, and says where they stood."""

import json
import signal
from typing import Any

import pytest

from tests.e2e.conftest import SCRIPTS
from tests.support import processes, wait
from tests.support.stack import Stack
from torchyard.api import Job
from torchyard.failures import fingerprints, recognition
from torchyard.states import JobState
from trainer.distributed import lost_ranks

pytestmark = pytest.mark.e2e

#: Seconds that ranks wait for one that hangs; by default it is 600.
TIMEOUT_S = 10
#: What may pass between the end of the ranks' patience and that of the job, on a busy machine.
MARGIN_S = 60
RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [32]},
    # It rests in each step, since nobody opens the gate.
    "data": {"name": "custom", "target": "paced:points", "options": {"count": 64, "gate": "/nowhere"}},
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
    job = yard.client.submit({"live": str(SCRIPTS), "resources": {"gpus": 2}, "recipe": RECIPE})
    wait.until(lambda: yard.client.metrics(job.id).series, seconds=180, what="the first steps")
    return job


def test_a_rank_that_hangs_is_named_by_the_one_that_waited(yard: Stack) -> None:
    job = _training(yard)
    attempt = yard.client.attempts(job.id)[-1].id
    processes.rank(attempt, 1).send_signal(signal.SIGSTOP)
    ended = yard.client.wait(job.id, timeout_s=TIMEOUT_S + lost_ranks.ROLL_CALL_S + MARGIN_S)
    assert ended.state is JobState.FAILED
    assert ended.devices == []
    assert not processes.of_attempt(attempt)
    assert ended.error is not None
    assert (ended.error.rank, ended.error.exit_code) == (0, 1)
    assert ended.error.message == f"rank 0 exited with code 1: {recognition.advice(fingerprints.LOST_RANK)}"
    assert ended.error.traceback is not None
    assert "PeerError: rank 1 no longer answers" in ended.error.traceback


def test_a_run_that_hangs_says_where_its_ranks_stand(yard: Stack) -> None:
    script = SCRIPTS / "hangs.py"
    code = script.read_text().split("\n")
    waits = 1 + next(n for n, line in enumerate(code) if "all_reduce" in line)
    loads = 1 + next(n for n, line in enumerate(code) if "time.sleep(60)" in line)
    job = yard.client.submit(
        {
            "command": [str(script)],
            "live": str(SCRIPTS),
            "resources": {"gpus": 2},
            "hang": {"after": 5, "factor": 1},
            "grace": 1,
        }
    )
    ended = yard.client.wait(job.id, timeout_s=180)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error.cause == "hung"
    assert "rank 1 waits in all_reduce" in ended.error.message
    said = f"rank 0 is in load (hangs.py:{loads}); rank 1 waits in all_reduce (hangs.py:{waits})"
    told = {event.kind: event.message for event in yard.client.events(job.id)}
    assert told["hangs"].startswith("hangs: no step for ")
    assert told["stacks"] == said
    assert told["stop-requested"] == f"stopped because it makes no step any more: {said}"
    assert not processes.of_attempt(yard.client.attempts(job.id)[-1].id)

    shown = yard.yard("stacks", str(job.number))
    assert said in shown.stdout
    (dump,) = json.loads(yard.yard("stacks", str(job.number), "--json").stdout)
    frames = [frame for thread in dump["processes"][1]["threads"] for frame in thread["frames"]]
    assert {frame["native"] for frame in frames} == {True, False}
