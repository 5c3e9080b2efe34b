"""A training makes room for an urgent job and goes on as if nothing had happened."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e import paced
from tests.support import wait
from tests.support.stack import Stack
from torchyard.api import Job
from torchyard.spec.policy import Policy
from torchyard.states import AttemptState, JobState

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def _final_weights(yard: Stack, job: Job, folder: Path) -> dict[str, torch.Tensor]:
    def stored() -> Any:
        newest = max(yard.client.checkpoints(job.id), key=lambda checkpoint: checkpoint.step)
        return newest if newest.state == "stored" else None

    checkpoint = wait.until(stored, what="the last checkpoint in the store")
    yard.client.download_checkpoint(checkpoint, folder)
    loaded: dict[str, torch.Tensor] = torch.load(folder / "model.pt", weights_only=True)
    return loaded


def test_an_urgent_job_preempts_a_training_that_loses_nothing(yard: Stack, tmp_path: Path) -> None:
    yard.client.set_policy(Policy(min_run=0))
    gate = tmp_path / "gate"
    low = yard.client.submit(paced.training(gate, name="low", priority="low"))
    wait.until(lambda: any(c.state == "stored" for c in yard.client.checkpoints(low.id)), what="a verified checkpoint")
    urgent = yard.client.submit(
        {"name": "urgent", "priority": "urgent", "launcher": "none", "command": ["true"], "resources": {"gpus": 2}}
    )
    assert yard.client.wait(urgent.id).state is JobState.SUCCEEDED
    gate.touch()
    ended = yard.client.wait(low.id)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2), ended.error
    first, second = yard.client.attempts(low.id)
    assert (first.state, second.state) == (AttemptState.PREEMPTED, AttemptState.SUCCEEDED)

    whole = yard.client.submit(paced.training(gate, name="undisturbed"))
    assert yard.client.wait(whole.id).state is JobState.SUCCEEDED
    disturbed = _final_weights(yard, low, tmp_path / "disturbed")
    straight = _final_weights(yard, whole, tmp_path / "straight")
    assert disturbed.keys() == straight.keys()
    assert all(torch.equal(disturbed[name], straight[name]) for name in straight)

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
