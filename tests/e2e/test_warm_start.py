"""A stack as it comes: jobs after the first of an environment are forked from a process that has PyTorch loaded."""

import sys
from pathlib import Path

import pytest

from tests.support import results, stack, wait
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

PROGRAM = """
import torch, torchyard
torch.manual_seed(1)
print("drew", float(torch.rand(())).hex())
torchyard.report(loss=1.5)
"""


@pytest.mark.timeout(300)
def test_the_second_job_of_an_environment_starts_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHYARD_WARM_START")
    (tmp_path / "train.py").write_text(PROGRAM)
    spec = {"command": ["python", "train.py"], "launcher": "torchrun", "python": sys.executable, "live": str(tmp_path)}
    with stack.running(tmp_path / "home", slots=1) as yard:

        def run() -> tuple[bool, str | None, bytes]:
            job = yard.client.submit({**spec, "resources": {"gpus": 1}})
            ended = results.settled(yard.client, job.id)
            assert ended.state is JobState.SUCCEEDED, (ended.error, yard.log(job))
            (start,) = yard.client.timing(job.id)
            return bool(start.warm), start.cold_reason, yard.log(job)

        first = run()
        assert first[:2] == (False, "no fork server had this environment yet; one is made for the jobs to come")
        log = yard.home / "logs" / "worker.log"
        wait.until(lambda: "start warm from now on" in log.read_text(), seconds=120, what="a fork server")
        assert run() == (True, None, first[2])
