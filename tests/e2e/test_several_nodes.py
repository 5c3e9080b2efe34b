"""Two real workers in two network namespaces train together over the network between them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes, ranks, results
from tests.support.attempt import AttemptFolder
from tests.support.fleet import Fleet, fleet
from tests.support.wait import until
from torchyard.injob import files, layout
from torchyard.network import speed
from torchyard.recipe import Recipe
from torchyard.states import JobState
from trainer.run import run

pytestmark = [pytest.mark.e2e, pytest.mark.interfaces, pytest.mark.timeout(600)]
SCRIPT = Path(__file__).parent / "scripts" / "nodes.py"
#: On each node.
GPUS = {"ddp": 2, "fsdp": 1}
RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [32, 32]},
    "data": {"name": "synthetic", "samples": 203, "validation_samples": 51, "shape": [16]},
    "optim": {"name": "sgd", "lr": 0.05},
    "epochs": 2,
    "global_batch_size": 32,
    "log_every": 1,
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with processes.unmarked(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHYARD_HOME", str(folder))
        with fleet(folder, slots=6) as made:
            yield made


def log(two: Fleet, job: str, rank: int) -> str:
    return b"".join(two.client.logs(job, rank=rank)).decode()


def all_say(two: Fleet, job: str, words: str) -> None:
    for rank in range(4):
        until(lambda rank=rank: words in log(two, job, rank), seconds=180, what=f"{words!r} of rank {rank}")


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
    stopped = two.client.wait(job.id, timeout_s=180)
    assert stopped.state is JobState.CANCELLED
    checkpoint = until(lambda: next((one for one in two.client.checkpoints(job.id) if one.state == "stored"), None))
    assert [each.name for each in checkpoint.files] == [*(f"rank-{rank}.pt" for rank in range(4)), "state.pt"]
    until(lambda: f"stopped at step {checkpoint.step}" in log(two, job.id, 3), what="the last rank's last line")

    again = two.client.rerun(job.id, from_checkpoint="latest")
    all_say(two, again.id, f"from {checkpoint.step}: same parameters")
    attempt = two.client.attempts(again.id)[0].id
    killed = time.monotonic()
    processes.rank(attempt, 3).kill()
    failed = two.client.wait(again.id, timeout_s=180)
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    second = list(two.addresses)[1]
    assert failed.error.message.startswith(f"rank 3 on node {second} was killed by SIGKILL (signal 9)")
    assert time.monotonic() - killed < 120
    assert failed.devices == []


def test_recipes_on_two_nodes_come_to_what_one_node_comes_to(two: Fleet, tmp_path: Path) -> None:
    alone = AttemptFolder(tmp_path / "one node")
    recipe = Recipe.model_validate({**RECIPE, "strategy": "ddp"})
    ranks.run(run, 2, recipe, environment=alone.environment() | {layout.DEVICES: "2"})
    losses = {"one node": alone.series("val/loss")}
    proofs = {"one node": files.read_json(str(alone.root / layout.OUTPUT / "strategy.json"))}
    jobs = {
        name: two.client.submit({"resources": {"gpus": gpus, "nodes": 2}, "recipe": {**RECIPE, "strategy": name}})
        for name, gpus in GPUS.items()
    }
    for name, job in jobs.items():
        ended = results.settled(two.client, job.id)
        assert ended.state is JobState.SUCCEEDED, (name, ended.error, log(two, job.id, 0)[-3000:])
        proofs[name] = results.proof(two.client, job.id, tmp_path / name)
        losses[name] = results.series(two.client, job.id, "val/loss")

    # Four shares' gradients are added in another order than two shares' are.
    assert losses["ddp"] == pytest.approx(losses["one node"], rel=1e-6)
    assert losses["fsdp"] == pytest.approx(losses["one node"], rel=1e-6)
    for name in jobs:
        assert proofs[name]["strategy"] == name
        assert [rank["rank"] for rank in proofs[name]["ranks"]] == list(range(2 * GPUS[name]))
    (whole,) = {rank["parameter_bytes"]["cpu"] for rank in proofs["ddp"]["ranks"]}
    pieces = [rank["parameter_bytes"]["cpu"] for rank in proofs["fsdp"]["ranks"]]
    assert sum(pieces) == whole
    assert max(pieces) < whole * 2 / 3
    # Of a ring's 2(W-1)/W, four ranks send 3/2 of the gradients and two ranks 1.
    assert {rank["bytes_sent_per_step"] for rank in proofs["ddp"]["ranks"]} == {whole * 3 // 2}
    assert {rank["bytes_sent_per_step"] for rank in proofs["one node"]["ranks"]} == {whole}

    # After the first step the runs have measured what lies between the nodes, and the next one is told.
    told = " and ".join(sorted(two.addresses))
    rates = [results.series(two.client, job.id, speed.METRIC)[2] for job in jobs.values()]
    moved = [f"the network between {told} moved {speed.shown(rate)} at" for rate in rates]
    wanted_next = {"command": ["true"], "resources": {"gpus": 2, "nodes": 2}}
    until(lambda: any(words in two.client.check(wanted_next).note for words in moved), what=str(moved))


def test_each_node_keeps_its_own_files_and_finds_them_again(two: Fleet) -> None:
    write = "echo rank $NODE_RANK > snapshot.pt; echo same > same.txt; echo written"
    program = f"test -e snapshot.pt && exec cat snapshot.pt; {write}; sleep 600"
    spec = {"launcher": "none", "command": ["sh", "-c", program], "resources": {"gpus": 1, "nodes": 2}, "grace": 1}
    job = two.client.submit(spec)
    for rank in range(2):
        until(lambda rank=rank: log(two, job.id, rank) == "written\n", seconds=60, what=f"node rank {rank}")
    two.client.cancel(job.id)
    results.settled(two.client, job.id)
    found = two.client.outputs(job.id, every=True)
    ranked = [(each.name, each.node_rank, each.node) for each in found]
    first, second = two.addresses
    assert ranked == [(name, rank, (first, second)[rank]) for name in ("same.txt", "snapshot.pt") for rank in (0, 1)]

    again = two.client.rerun(job.id)
    assert results.settled(two.client, again.id).state is JobState.SUCCEEDED
    assert [log(two, again.id, rank) for rank in range(2)] == ["rank 0\n", "rank 1\n"]
