"""Trainings that are disturbed, by the end of all around them or of a rank, or by an urgent job: nothing is lost."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from tests.e2e import paced
from tests.e2e.conftest import SCRIPTS
from tests.support import processes, results, wait
from tests.support.stack import Stack
from torchyard.api import Checkpoint, Job
from torchyard.injob import layout
from torchyard.spec.policy import Policy
from torchyard.states import AttemptState, JobState
from worker.trackers.printed import METRIC

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


class Witness:
    """Hard links to what the ranks write: they stay when the attempt folder goes."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder, self._kept = folder, kept
        kept.mkdir()

    def look(self) -> set[str]:
        """Link the files that are there by now; return the ranks that have begun to write points."""
        for below, pattern in ((layout.METRICS, "*.jsonl"), (layout.LOGS, "rank-*.log")):
            for file in (self._folder / below).glob(pattern):
                if not (self._kept / file.name).exists():
                    os.link(file, self._kept / file.name)
        return {"-".join(file.name.split("-")[:2]) for file in self._kept.glob("*.jsonl")}

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
        if one.name == METRIC:  # the node reads it in the log, where it has time to look twice
            continue
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
    return results.settled(yard.client, job.id), witness


def test_all_killed_one_after_another_cost_the_training_nothing(yard: Stack, disturbed: tuple[Job, Witness]) -> None:
    job, witness = disturbed
    assert job.state is JobState.SUCCEEDED, job.error
    assert job.attempt == 1
    assert _stored_points(yard, job) == witness.points(), "every point exactly once"
    for rank in range(2):
        assert yard.log(job, rank) == witness.log(rank), "every byte of the log exactly once"
    checkpoints = yard.client.checkpoints(job.id)
    assert len({c.step for c in checkpoints}) == len(checkpoints)
    assert {c.state for c in checkpoints} == {"stored"}


def _final_weights(yard: Stack, job: Job, folder: Path) -> dict[str, torch.Tensor]:
    def stored() -> Checkpoint | None:
        newest = max(yard.client.checkpoints(job.id), key=lambda checkpoint: checkpoint.step)
        return newest if newest.state == "stored" else None

    checkpoint = wait.until(stored, what="the last checkpoint in the store")
    yard.client.download_checkpoint(checkpoint, folder)
    loaded: dict[str, torch.Tensor] = torch.load(folder / "model.pt", weights_only=True)
    return loaded


def test_an_urgent_job_preempts_a_training_that_loses_nothing(
    yard: Stack, disturbed: tuple[Job, Witness], tmp_path: Path
) -> None:
    """Its weights and its curve are those of a training that ran through."""
    yard.client.set_policy(Policy(min_run=0))
    gate = tmp_path / "gate"
    low = yard.client.submit(paced.training(gate, name="low", priority="low"))
    wait.until(lambda: any(c.state == "stored" for c in yard.client.checkpoints(low.id)), what="a verified checkpoint")
    urgent = yard.client.submit(
        {"name": "urgent", "priority": "urgent", "launcher": "none", "command": ["true"], "resources": {"gpus": 2}}
    )
    assert yard.client.wait(urgent.id).state is JobState.SUCCEEDED
    gate.touch()
    ended = results.settled(yard.client, low.id)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2), ended.error
    first, second = yard.client.attempts(low.id)
    assert (first.state, second.state) == (AttemptState.PREEMPTED, AttemptState.SUCCEEDED)

    through, witness = disturbed
    resumed = _final_weights(yard, low, tmp_path / "resumed")
    straight = _final_weights(yard, through, tmp_path / "straight")
    assert resumed.keys() == straight.keys()
    assert all(torch.equal(resumed[name], straight[name]) for name in straight)
    curve = witness.points()["train/loss"]
    assert _stored_points(yard, low)["train/loss"] == curve

    told = [event for event in yard.client.events(low.id) if event.kind != "checkpoint"]
    asked = next(place for place, event in enumerate(told) if event.kind == "preempting")
    story = [event.message for event in told[asked:]]
    preemptor = f"job {urgent.number} ({urgent.user}), urgent"
    assert (
        story[0] == f"is to be preempted for {preemptor}, which is of a higher class: asked to write a checkpoint first"
    )
    assert story[1].startswith(f"preempted for {preemptor}: its checkpoint of step ")
    step = second.resumed_from_step
    assert story[2].startswith(f"preempted for {preemptor} after a checkpoint at step {step}")
    assert f"the first instruction ran; resumes from step {step}" in story


def test_a_killed_rank_fails_the_job_and_its_last_points_count(yard: Stack, tmp_path: Path) -> None:
    steady = {"launcher": "torchrun", "python": sys.executable, "live": str(SCRIPTS), "resources": {"gpus": 2}}
    job = yard.client.submit({**steady, "command": ["steady.py", "100000"]})
    folder = yard.attempt_folder(job.id)
    witness = Witness(folder, tmp_path / "kept")
    wait.until(lambda: _step(yard, job) > 5, seconds=180, what="some steps")
    # Neither rank waits for the other: the second may be about to start.
    wait.until(lambda: witness.look() == {"rank-0", "rank-1"}, what="what both ranks write")
    processes.rank(folder.name, 1).kill()
    ended = results.settled(yard.client, job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert (ended.error.rank, ended.error.signal) == (1, 9)
    assert ended.error.message.startswith("rank 1 was killed by SIGKILL (signal 9)")
    assert ended.devices == []
    assert not processes.of_attempt(folder.name)
    assert _stored_points(yard, job) == witness.points(), "every flushed point"
