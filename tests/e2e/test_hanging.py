"""A run of two real ranks that hangs: it is dumped, shown and stopped, and says where each rank stood."""

import json

import pytest

from tests.e2e.conftest import SCRIPTS
from tests.support import processes
from tests.support.stack import Stack
from torchyard.states import JobState

pytestmark = pytest.mark.e2e


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
            "hang": {"after": 2, "factor": 1},
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
