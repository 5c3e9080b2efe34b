"""Everything around a training is killed while it runs; nothing is missing and nothing is doubled."""

import json
import os
from pathlib import Path

import pytest

from tests.e2e import paced
from tests.support import processes, wait
from tests.support.stack import Stack
from torchyard.api import Job
from torchyard.injob import layout
from torchyard.states import JobState

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


class Witness:
    """Hard links to what the ranks write: they stay when the attempt folder goes."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder, self._kept = folder, kept
        kept.mkdir()

    def look(self) -> None:
        """Links the files that are there by now."""
        for below, pattern in ((layout.METRICS, "*.jsonl"), (layout.LOGS, "rank-*.log")):
            for file in (self._folder / below).glob(pattern):
                if not (self._kept / file.name).exists():
                    os.link(file, self._kept / file.name)

    def points(self) -> dict[str, list[tuple[int, float]]]:
        """Every value that any rank wrote, by name, in the order of steps."""
        found: dict[str, list[tuple[int, float]]] = {}
        for file in self._kept.glob("*.jsonl"):
            for line in file.read_text().splitlines():
                record = json.loads(line)
                for name, value in record["v"].items():
                    found.setdefault(name, []).append((record["step"], value))
        return {name: sorted(points) for name, points in found.items()}

    def log(self, rank: int) -> bytes:
        """What a rank printed."""
        return (self._kept / layout.rank_log(rank)).read_bytes()


def _stored_points(yard: Stack, job: Job) -> dict[str, list[tuple[int, float]]]:
    series = yard.client.metrics(job.id, max_points=100_000).series
    found: dict[str, list[tuple[int, float]]] = {}
    for one in series:
        found.setdefault(one.name, []).extend((step, float(value)) for step, _, value in one.points)
    return {name: sorted(points) for name, points in found.items()}


def _step(yard: Stack, job: Job) -> int:
    progress = yard.client.job(job.id).progress
    return progress.step if progress else -1


@pytest.fixture(scope="module")
def disturbed(yard: Stack, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Witness]:
    """A training that has ended, during which every part of the stack was killed, and what its ranks wrote."""
    folder = tmp_path_factory.mktemp("disturbed")
    gate = folder / "gate"
    job = yard.client.submit(paced.training(gate))
    witness = Witness(yard.attempt_folder(job.id), folder / "kept")
    wait.until(lambda: _step(yard, job) >= 0, seconds=180, what="the first point")
    witness.look()
    for part in ("service", "redis-server", "worker", "service"):
        yard.kill(part)
    witness.look()
    gate.touch()
    return yard.client.wait(job.id), witness


def test_all_killed_one_after_another_cost_the_training_nothing(yard: Stack, disturbed: tuple[Job, Witness]) -> None:
    job, witness = disturbed
    assert job.state is JobState.SUCCEEDED, job.error
    assert job.attempt == 1
    wait.until(lambda: _stored_points(yard, job) == witness.points(), what="every point exactly once")
    wait.until(lambda: yard.log(job, 0) == witness.log(0), what="every byte of the log exactly once")
    assert yard.log(job, 1) == witness.log(1)
    checkpoints = yard.client.checkpoints(job.id)
    assert len({c.step for c in checkpoints}) == len(checkpoints)
    wait.until(lambda: all(c.state == "stored" for c in yard.client.checkpoints(job.id)), what="stored checkpoints")


def test_a_rerun_goes_on_at_its_step_with_the_same_loss_curve(
    yard: Stack, disturbed: tuple[Job, Witness], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    cut = yard.client.submit(paced.training(gate))
    wait.until(lambda: _step(yard, cut) > paced.STEPS, seconds=180, what="more than an epoch")
    yard.client.cancel(cut.id)
    assert yard.client.wait(cut.id).state is JobState.CANCELLED
    stopped = wait.until(lambda: yard.client.attempts(cut.id)[-1].ended_at and _stopped_at(yard, cut), what="its step")
    gate.touch()
    again = yard.client.rerun(cut.id)
    assert yard.client.wait(again.id).state is JobState.SUCCEEDED
    straight = dict(disturbed[1].points()["train/loss"])
    resumed = wait.until(lambda: _stored_points(yard, again).get("train/loss"), what="points")
    assert resumed[0][0] > stopped
    wait.until(lambda: _stored_points(yard, again)["train/loss"][-1][0] == max(straight), what="the last step")
    assert _stored_points(yard, again)["train/loss"] == [(step, v) for step, v in straight.items() if step > stopped]


def _stopped_at(yard: Stack, job: Job) -> int:
    return max(c.step for c in yard.client.checkpoints(job.id))


def test_a_killed_rank_fails_the_job_and_its_last_points_count(yard: Stack, tmp_path: Path) -> None:
    job = yard.client.submit(paced.training(tmp_path / "gate", epochs=1000))
    folder = yard.attempt_folder(job.id)
    witness = Witness(folder, tmp_path / "kept")
    wait.until(lambda: _step(yard, job) > 5, seconds=180, what="some steps")
    witness.look()
    processes.rank(folder.name, 1).kill()
    ended = yard.client.wait(job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert (ended.error.rank, ended.error.signal) == (1, 9)
    assert ended.error.message.startswith("rank 1 was killed by SIGKILL (signal 9)")
    assert ended.devices == []
    assert not processes.of_attempt(folder.name)
    wait.until(lambda: _stored_points(yard, job) == witness.points(), what="every flushed point")
