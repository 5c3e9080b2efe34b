"""Every strategy as a line of YAML, through the queue: one model, one effective batch, one result."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import processes, results, stack, wait
from tests.support.stack import Stack
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [32, 32]},
    "data": {"name": "synthetic", "samples": 203, "validation_samples": 51, "shape": [16]},
    "optim": {"name": "sgd", "lr": 0.05},
    "epochs": 3,
    "global_batch_size": 32,
    "log_every": 1,
}
#: A strategy, the devices it gets, and how many ranks then run.
STRATEGIES: dict[str, tuple[Any, int, int]] = {
    "single": ("single", 1, 1),
    "dp": ("dp", 2, 1),
    "broadcast": ("broadcast", 2, 2),
    "parameter_server": ({"name": "parameter_server", "servers": 1}, 2, 3),
    "ring": ("ring", 2, 2),
    "ddp": ("ddp", 2, 2),
    "model_parallel": ("model_parallel", 2, 1),
    "pipeline": ({"name": "pipeline", "schedule": "1f1b", "microbatches": 4}, 2, 2),
    "fsdp": ("fsdp", 2, 2),
    "tensor_parallel": ("tensor_parallel", 2, 2),
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Slots for three of them at a time: more ranks than that only keep the other tests waiting."""
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home"), slots=6) as running:
        yield running


@pytest.mark.timeout(600)
def test_all_strategies_come_to_the_same_and_prove_what_they_are(yard: Stack, tmp_path: Path) -> None:
    jobs = {
        name: yard.client.submit(
            {"name": name.replace("_", "-"), "resources": {"gpus": gpus}, "recipe": {**RECIPE, "strategy": strategy}}
        )
        for name, (strategy, gpus, _) in STRATEGIES.items()
    }
    losses = {}
    for name, job in jobs.items():
        ended = yard.client.wait(job.id)
        assert ended.state is JobState.SUCCEEDED, (name, ended.error, yard.log(job)[-3000:])
        proof = results.proof(yard.client, job.id, tmp_path / name)
        assert proof["strategy"] == name
        assert len(proof["ranks"]) == proof["world_size"] == STRATEGIES[name][2]
        losses[name] = results.series(yard.client, job.id, "val/loss")
    for name, reached in losses.items():
        assert reached == pytest.approx(losses["single"], rel=1e-4), name


def test_checkpoints_in_pieces_and_whole_are_averaged(yard: Stack, tmp_path: Path) -> None:
    by_name = {job.name: job for job in yard.client.jobs()}
    pulled = yard.yard("pull", by_name["ddp"].id, str(tmp_path / "ddp"))
    assert pulled.returncode == 0, pulled.stderr
    (folder,) = (tmp_path / "ddp").glob("step-*")
    alone = torch.load(folder / "model.pt", weights_only=True)

    out = tmp_path / "mean.pt"
    averaged = yard.yard("checkpoints", "average", by_name["ddp"].id, by_name["fsdp"].id, "--out", str(out))
    assert averaged.returncode == 0, averaged.stderr
    mean = torch.load(out, weights_only=True)
    assert mean.keys() == alone.keys()
    for name, value in mean.items():
        torch.testing.assert_close(value, alone[name], rtol=1e-3, atol=1e-5)


@pytest.mark.timeout(600)
def test_the_comparison_runs_as_a_job(yard: Stack, tmp_path: Path) -> None:
    """Of one device: what the others are compared with is enough to show that all arrives."""
    sizes = ["--devices", "1", "--batch", "16", "--steps", "1", "--repeats", "1", "--warm-up", "0"]
    ended = yard.yard("bench", "strategies", "--", *sizes, seconds=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "speed-up" in ended.stdout
    (job,) = [each for each in yard.client.jobs() if each.name == "bench-strategies"]
    names = wait.until(
        lambda: {each.name for each in found} if len(found := list(yard.client.outputs(job.id))) == 3 else None,
        what="the outputs",
    )
    assert names == {"strategies.csv", "strategies.png", "strategies.svg"}
