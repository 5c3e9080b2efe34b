"""Every strategy as a line of YAML, through the queue: one model, one effective batch, one result."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.support import processes, results, stack
from tests.support.stack import Stack
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples" / "strategies"
#: How many ranks each example runs on; they differ in nothing but the strategy and its devices.
RANKS = {
    "single": 1,
    "dp": 1,
    "broadcast": 2,
    "parameter_server": 3,
    "ring": 2,
    "ddp": 2,
    "model_parallel": 1,
    "pipeline": 2,
    "fsdp": 2,
    "tensor_parallel": 2,
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Slots for three of them at a time: more ranks than that only keep the other tests waiting."""
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home"), slots=6) as running:
        yield running


@pytest.mark.timeout(600)
def test_all_strategies_come_to_the_same_and_prove_what_they_are(yard: Stack, tmp_path: Path) -> None:
    jobs = {name: yard.client.submit(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())) for name in RANKS}
    losses, proofs = {}, {}
    for name, job in jobs.items():
        ended = yard.client.wait(job.id)
        assert ended.state is JobState.SUCCEEDED, (name, ended.error, yard.log(job)[-3000:])
        proof = results.proof(yard.client, job.id, tmp_path / name)
        assert proof["strategy"] == name
        assert len(proof["ranks"]) == proof["world_size"] == RANKS[name]
        losses[name] = results.series(yard.client, job.id, "val/loss")
        proofs[name] = proof["ranks"]
    for name, reached in losses.items():
        assert reached == pytest.approx(losses["single"], rel=1e-4), name
    accuracy = results.series(yard.client, jobs["single"].id, "val/accuracy")
    assert accuracy[max(accuracy)] > 0.8, accuracy
    assert_proofs_are_as_the_examples_say(proofs)


def assert_proofs_are_as_the_examples_say(proofs: dict[str, list[dict[str, Any]]]) -> None:
    """Each file names in its comment what `strategy.json` shows of it."""
    held = {name: [sum(rank["parameter_bytes"].values()) for rank in found] for name, found in proofs.items()}
    (whole,) = held["single"]
    assert held["ddp"] == [whole, whole]
    assert held["fsdp"] == [whole // 2, whole // 2]
    assert all(whole / 2 <= each < 0.52 * whole for each in held["tensor_parallel"])
    (dp,), (split,) = proofs["dp"], proofs["model_parallel"]
    assert (dp["replicas"], dp["deals"]["pass"][0]) == (2, [32, 32])
    assert [rank["role"] for rank in proofs["broadcast"]] == ["root", "leaf"]
    assert [rank["role"] for rank in proofs["parameter_server"]] == ["worker", "worker", "server"]
    assert [rank["optimizer_bytes"] for rank in proofs["parameter_server"]] == [0, 0, whole]
    assert [(rank["receives_from"], rank["sends_to"]) for rank in proofs["ring"]] == [(1, 1), (0, 0)]
    stages = [stage for rank in proofs["pipeline"] for stage in rank["stages"]]
    for parts in (split["places"], stages):
        assert len(parts) == 2
        assert set(parts[0]["layers"]).isdisjoint(parts[1]["layers"])
        assert sum(part["parameter_bytes"] for part in parts) == whole


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
def test_the_twin_of_the_benchmark_runs_as_a_job_and_its_page_is_brought(yard: Stack, tmp_path: Path) -> None:
    """`yard bench strategies` as it is typed where there is no network, down to the page on this machine."""
    words = ["--model", "deeplabv3_resnet101", "--data", "voc", "--offline", "--steps", "2", "--save", "--gpus", "2"]
    sizes = ["--repeats", "1", "--warm-up", "0"]
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
        rows = [(row["strategy"], row["devices"]) for row in csv.DictReader(file)]
    assert rows == [("single", "1"), ("dp", "2"), ("ddp", "2")]


def test_what_cannot_be_compared_is_refused_before_it_is_queued(yard: Stack) -> None:
    before = len(list(yard.client.jobs()))
    refused = yard.yard("bench", "strategies", "--model", "mlp", "--data", "voc")
    assert refused.returncode == 1
    assert "take model: deeplabv3_resnet101 or tiny_segmenter" in refused.stderr
    more = yard.yard("bench", "strategies", "--gpus", "64")
    assert more.returncode == 1
    assert "resources.gpus: no node could ever run this job" in more.stderr
    assert len(list(yard.client.jobs())) == before
