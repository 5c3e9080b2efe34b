"""Every strategy as a line of YAML: one model, one effective batch, one result, and a proof of what it is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ranks
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout
from torchyard.spec import JobSpec
from trainer.run import run
from trainer.strategies import STRATEGIES

EXAMPLES = Path(__file__).parents[3] / "examples" / "strategies"
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


def test_every_strategy_has_an_example_that_differs_in_nothing_else() -> None:
    contents = {path.stem: yaml.safe_load(path.read_text()) for path in EXAMPLES.glob("*.yaml")}
    assert contents.keys() == STRATEGIES.keys() == RANKS.keys()
    rest = []
    for name, content in contents.items():
        spec = JobSpec.model_validate(content)
        assert spec.recipe is not None
        assert spec.recipe.strategy.name == name
        assert content["name"] == name.replace("_", "-")
        assert spec.world_size == RANKS[name]
        rest.append({key: value for key, value in content["recipe"].items() if key != "strategy"})
    assert all(each == rest[0] for each in rest)


def trained(name: str, folder: Path) -> AttemptFolder:
    """Trains an example on as many ranks as its job has."""
    spec = JobSpec.model_validate(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))
    attempt = AttemptFolder(folder)
    environment = attempt.environment() | {layout.DEVICES: str(spec.resources.gpus)}
    ranks.run(run, spec.world_size, spec.recipe, environment=environment, cwd=folder)
    return attempt


def test_all_strategies_come_to_the_same_and_prove_what_they_are(tmp_path: Path) -> None:
    """`tests/e2e/test_strategies.py` sends two of them through the queue."""
    attempts = {name: trained(name, tmp_path / name) for name in RANKS}
    proofs = {}
    for name, attempt in attempts.items():
        proof = json.loads((attempt.root / layout.OUTPUT / "strategy.json").read_text())
        assert proof["strategy"] == name
        assert len(proof["ranks"]) == proof["world_size"] == RANKS[name]
        assert attempt.series("val/loss") == pytest.approx(attempts["single"].series("val/loss"), rel=1e-4), name
        proofs[name] = proof["ranks"]
    accuracy = attempts["single"].series("val/accuracy")
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
