"""Strategies through the queue: a line of YAML each, their checkpoints, and their comparison."""

import csv
from pathlib import Path

import pytest
import torch
import yaml

from tests.support import results
from tests.support.stack import Stack
from torchyard.api import Job
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples" / "strategies"
#: One process with two devices, and two that hold a half of the model each.
RANKS = {"model_parallel": 1, "fsdp": 2}


@pytest.fixture(scope="module")
def jobs(yard: Stack) -> dict[str, Job]:
    """What each of these examples has come to."""
    jobs = {name: yard.client.submit(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())) for name in RANKS}
    for name, job in jobs.items():
        jobs[name] = ended = results.settled(yard.client, job.id)
        assert ended.state is JobState.SUCCEEDED, (name, ended.error, yard.log(job)[-3000:])
    return jobs


@pytest.mark.timeout(600)
def test_examples_come_to_the_same_and_prove_what_they_are(yard: Stack, jobs: dict[str, Job], tmp_path: Path) -> None:
    """All ten train in `tests/integration/examples/test_strategies.py`; `test_tutorial_commands.py` submits DDP."""
    losses, held = {}, {}
    for name, job in jobs.items():
        proof = results.proof(yard.client, job.id, tmp_path / name)
        assert proof["strategy"] == name
        assert len(proof["ranks"]) == proof["world_size"] == RANKS[name]
        losses[name] = results.series(yard.client, job.id, "val/loss")
        held[name] = [sum(rank["parameter_bytes"].values()) for rank in proof["ranks"]]
        if name == "model_parallel":
            assert len(proof["ranks"][0]["places"]) == 2
    assert losses["fsdp"] == pytest.approx(losses["model_parallel"], rel=1e-4)
    (whole,) = held["model_parallel"]
    assert held["fsdp"] == [whole // 2, whole // 2]


@pytest.mark.timeout(600)
def test_checkpoints_in_pieces_and_whole_are_averaged(yard: Stack, jobs: dict[str, Job], tmp_path: Path) -> None:
    whole, pieces = jobs["model_parallel"], jobs["fsdp"]
    pulled = yard.yard("pull", whole.id, str(tmp_path / "whole"))
    assert pulled.returncode == 0, pulled.stderr
    (folder,) = (tmp_path / "whole").glob("step-*")
    alone = torch.load(folder / "model.pt", weights_only=True)

    out = tmp_path / "mean.pt"
    averaged = yard.yard("checkpoints", "average", whole.id, pieces.id, "--out", str(out))
    assert averaged.returncode == 0, averaged.stderr
    mean = torch.load(out, weights_only=True)
    assert mean.keys() == alone.keys()
    for name, value in mean.items():
        torch.testing.assert_close(value, alone[name], rtol=1e-3, atol=1e-5)


@pytest.mark.timeout(600)
def test_the_twin_of_the_benchmark_runs_as_a_job_and_its_page_is_brought(yard: Stack, tmp_path: Path) -> None:
    """`yard bench strategies` as it is typed where there is no network, down to the page on this machine."""
    words = ["--model", "deeplabv3_resnet101", "--data", "voc", "--offline", "--steps", "2", "--save", "--gpus", "2"]
    sizes = ["--repeats", "1", "--warm-up", "0", "--strategies", "ddp"]
    ended = yard.yard("bench", "strategies", *words, "--no-open", "--", *sizes, cwd=tmp_path, seconds=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "This is the offline twin of deeplabv3_resnet101 on voc" in ended.stdout
    (job,) = [each for each in yard.client.jobs() if each.name == "bench-strategies"]
    page = tmp_path / f"bench-{job.number}" / "strategies.html"
    assert ended.stdout.splitlines()[-1] == str(page)
    assert "This is the offline twin of deeplabv3_resnet101 on voc" in page.read_text()
    names = {"strategies.csv", "strategies.html", "strategies.png", "strategies.svg"}
    assert {path.name for path in page.parent.iterdir()} == {each.name for each in yard.client.outputs(job.id)} == names
    with page.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["devices"]) for row in rows] == [("single", "1"), ("ddp", "2")]
    assert int(rows[-1]["bytes_per_rank"]) > 0


def test_what_cannot_be_compared_is_refused_before_it_is_queued(yard: Stack) -> None:
    before = len(list(yard.client.jobs()))
    refused = yard.yard("bench", "strategies", "--model", "mlp", "--data", "voc")
    assert refused.returncode == 1
    assert "take model: deeplabv3_resnet101 or tiny_segmenter" in refused.stderr
    more = yard.yard("bench", "strategies", "--gpus", "64")
    assert more.returncode == 1
    assert "resources.gpus: no node could ever run this job" in more.stderr
    assert len(list(yard.client.jobs())) == before
