"""A secret through the whole stack: the job has it, and nothing that is stored, sent or shown does."""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import wait
from tests.support.stack import Stack, worker_folder
from torchyard.api import Job
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

VALUE = "k-5f1c0b9e7d3a4826"
SCRIPT = """
import hashlib, os, pathlib, time
print(hashlib.sha256(os.environ["E2E_API_KEY"].encode()).hexdigest(), flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.05)
"""
OF_JOB = ("", "/events", "/attempts", "/why", "/outputs", "/checkpoints", "/logs/streams", "/metrics", "/telemetry")


def _holders(folder: Path) -> Iterator[str]:
    """Files that have the value: databases and their journals, Redis's, logs, attempts."""
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            try:
                if path.is_file() and VALUE.encode() in path.read_bytes():
                    yield str(path)
            except FileNotFoundError:
                continue


def _told(yard: Stack, job: Job) -> str:
    """All that the API says of the job, and so the command line, which asks it."""
    paths = [f"/jobs/{job.id}{rest}" for rest in OF_JOB]
    answers = [yard.client.connection.request("GET", path).text for path in [*paths, "/queue", "/secrets", "/audit"]]
    return "\n".join([*answers, yard.log(job).decode()])


def test_a_secret_is_in_the_job_and_nowhere_else(yard: Stack, tmp_path: Path) -> None:
    done = yard.yard("secrets", "set", "E2E_API_KEY", given=f"{VALUE}\n")
    assert done.returncode == 0, done.stderr
    (tmp_path / "train.py").write_text(SCRIPT)
    spec = {"launcher": "python", "python": sys.executable, "live": str(tmp_path), "command": ["train.py"]}
    job = yard.client.submit({**spec, "secrets": ["E2E_API_KEY"]})
    digest = hashlib.sha256(VALUE.encode()).hexdigest()
    wait.until(lambda: digest in yard.log(job).decode(), what="the job's line")
    told = _told(yard, job)
    folders = (yard.home, worker_folder(yard.home))
    assert [path for folder in folders for path in _holders(folder)] == []
    (tmp_path / "go").touch()
    assert yard.client.wait(job.id).state is JobState.SUCCEEDED
    told += _told(yard, job) + yard.yard("show", str(job.number)).stdout
    assert "E2E_API_KEY" in told
    assert digest in told
    assert VALUE not in told
    assert [path for folder in folders for path in _holders(folder)] == []
    assert f"by job {job.number}" in yard.yard("secrets", "ls").stdout
    assert yard.yard("secrets", "rm", "E2E_API_KEY").returncode == 0
    refused = yard.yard("run", "--detach", "--secret", "E2E_API_KEY", "--", "true", cwd=tmp_path)
    assert refused.returncode == 125
    assert "no secret E2E_API_KEY" in refused.stderr
