"""Two real workers in two network namespaces train together over the network between them."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, fleet
from tests.support.wait import until
from torchyard.states import JobState

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
SCRIPT = Path(__file__).parent / "scripts" / "ddp_nodes.py"


@pytest.fixture
def two(tmp_path: Path, short_tmp: Path, yard_home: Path) -> Iterator[Fleet]:
    with fleet(tmp_path, short_tmp) as made:
        yield made


def log(two: Fleet, job: str, rank: int) -> str:
    return b"".join(two.client.logs(job, rank=rank)).decode()


def all_say(two: Fleet, job: str, words: str) -> None:
    for rank in range(4):
        until(lambda rank=rank: words in log(two, job, rank), seconds=60, what=f"{words!r} of rank {rank}")


def test_two_by_two(two: Fleet) -> None:
    spec = {
        "command": ["python", str(SCRIPT)],
        "live": str(SCRIPT.parent),
        "resources": {"gpus": 2, "nodes": 2},
        "grace": 60,
    }
    job = two.client.submit(spec)
    all_say(two, job.id, "from 0: same parameters")
    first_address = next(iter(two.addresses.values()))
    for rank in range(4):
        who = f"{rank} {rank % 2} 4 2 {rank // 2} eth0 {first_address}\n"
        assert log(two, job.id, rank).startswith(who)
    assert [member.last_rank for member in two.client.attempts(job.id)[0].members] == [1, 3]

    two.client.cancel(job.id)
    stopped = two.client.wait(job.id, timeout_s=60)
    assert stopped.state is JobState.CANCELLED
    checkpoint = until(lambda: next((one for one in two.client.checkpoints(job.id) if one.state == "stored"), None))
    assert [each.name for each in checkpoint.files] == [*(f"rank-{rank}.pt" for rank in range(4)), "state.pt"]
    assert f"stopped at step {checkpoint.step}" in log(two, job.id, 3)

    again = two.client.rerun(job.id, from_checkpoint="latest")
    all_say(two, again.id, f"from {checkpoint.step}: same parameters")
    attempt = two.client.attempts(again.id)[0].id
    killed = time.monotonic()
    os.kill(two.pid_of_rank(attempt, 3, 2), signal.SIGKILL)
    failed = two.client.wait(again.id, timeout_s=60)
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    second = list(two.addresses)[1]
    assert failed.error.message.startswith(f"rank 3 on node {second} was killed by SIGKILL (signal 9)")
    assert time.monotonic() - killed < 30
    assert failed.devices == []
