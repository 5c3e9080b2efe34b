"""Two real ranks."""

import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Subset, TensorDataset, random_split

from tests.support import ranks, training, wait
from tests.support.attempt import AttemptFolder
from torchyard.recipe import Recipe
from trainer.command import main
from trainer.data import Batch, DataSets, Shape, TensorData
from trainer.distributed.process_group import joined
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.run import run

#: Neither the training nor the validation samples divide by two ranks or by the batch.
UNEVEN: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [16], "dropout": 0.0},
    "data": {"name": "synthetic", "samples": 91, "validation_samples": 37, "shape": [5]},
    "optim": {"name": "sgd", "lr": 0.1},
    "epochs": 2,
    "batch_size": 10,
    "log_every": 1,
}


def load(path: Path) -> dict[str, torch.Tensor]:
    loaded: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
    return loaded


def attempt_of(tmp_path: Path, name: str, recipe: dict[str, Any]) -> AttemptFolder:
    folder = AttemptFolder(tmp_path / name)
    (folder.root / "recipe.json").write_text(json.dumps(recipe))
    return folder


def train(folder: AttemptFolder, *, restore: Path | None = None) -> None:
    ranks.run(main, 2, ["recipe.json"], environment=folder.environment(restore=restore), cwd=folder.root)


def test_two_ranks_train_as_one_would(tmp_path: Path) -> None:
    """Equal parameters on all ranks; losses, weights and scores those of the whole batch in one process."""
    trained = training.train(UNEVEN, 2, tmp_path)
    first, second = trained.own
    assert training.equal(first, second)

    weights, losses, accuracies = training.plainly(UNEVEN, 20)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)
    assert list(trained.attempt.series("train/accuracy").values()) == pytest.approx(accuracies)
    for name, value in weights.items():
        torch.testing.assert_close(first[name], value, rtol=1e-3, atol=1e-5)

    folder = trained.attempt
    portable = load(folder.checkpoints()[-1] / "model.pt")  # plain names, without DDP
    exact = training.scores(UNEVEN, portable)
    last = max(folder.series("val/loss"))
    assert folder.series("val/loss")[last] == pytest.approx(exact["loss"], rel=1e-6)
    assert folder.series("val/accuracy")[last] == pytest.approx(exact["accuracy"], rel=1e-12)
    assert {record["total"] for record in folder.records()} == {10}


def dropping() -> nn.Module:
    """Has other outputs in training than in evaluation, and a forward pass in training changes its buffers.

    Not those of its last normalisation, whose statistics stay as they are.
    """
    layers = nn.Linear(5, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.BatchNorm1d(16).eval(), nn.Linear(16, 10)
    return nn.Sequential(*layers)


def in_evaluation_mode() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.Linear(16, 10)).eval()


def test_a_model_that_comes_in_evaluation_mode_is_trained(tmp_path: Path) -> None:
    given = {**UNEVEN, "model": {"name": "custom", "target": f"{__name__}:in_evaluation_mode"}, "epochs": 1}
    assert training.train(given, 2, tmp_path).whole["1.running_mean"].any()


def test_scores_are_of_evaluation_mode_and_change_no_bit_of_the_training(tmp_path: Path) -> None:
    given = {**UNEVEN, "model": {"name": "custom", "target": f"{__name__}:dropping"}, "epochs": 3}
    often = training.train(given, 2, tmp_path / "often")
    exact = training.scores(given, load(often.attempt.checkpoints()[-1] / "model.pt"))
    for name in ("loss", "accuracy"):
        assert often.attempt.series(f"val/{name}")[15] == pytest.approx(exact[name], rel=1e-6)
    once = training.train({**given, "evaluate_every": 3}, 2, tmp_path / "once")
    assert often.losses() == once.losses()
    assert training.equal(often.whole, once.whole)


def test_reports_by_the_clock_miss_no_step_on_any_rank(tmp_path: Path) -> None:
    each_step = {**UNEVEN, "epochs": 10}
    by_clock = {key: value for key, value in each_step.items() if key != "log_every"}
    losses = training.train(each_step, 2, tmp_path / "each").attempt.series("train/loss")
    found = training.train(by_clock, 2, tmp_path / "clock").attempt.series("train/loss")
    begun = 0
    for step, loss in sorted(found.items()):
        steps = range(begun + 1, step + 1)
        samples = [11 if each % 5 == 0 else 20 for each in steps]
        mean = sum(losses[each] * count for each, count in zip(steps, samples, strict=True)) / sum(samples)
        assert loss == pytest.approx(mean, rel=1e-5)
        begun = step
    assert min(found) == 1


def split_by_chance() -> DataSets:
    samples = TensorDataset(torch.arange(20.0).view(20, 1), torch.zeros(20, dtype=torch.long))
    train, validation = random_split(samples, [15, 5])
    return DataSets(train=train, validation=validation, shape=Shape(sample=(1,), classes=2))


def split(given: dict[str, Any]) -> tuple[list[int], float]:
    recipe = Recipe.model_validate(given)
    torch.rand(int(os.environ["RANK"]))
    with joined(recipe.strategy) as world:
        components = build(recipe, world)
        Training(components).run()
        assert isinstance(components.data.train, Subset)
        return list(components.data.train.indices), float(torch.rand(()))


def test_data_that_are_split_by_chance_are_one_set_on_all_ranks_and_in_every_run() -> None:
    given = {**UNEVEN, "data": {"name": "custom", "target": f"{__name__}:split_by_chance"}, "epochs": 1}
    (first, drawn_first), (second, drawn_second) = ranks.run(split, 2, given)
    assert first == second == ranks.run(split, 1, given)[0][0]
    assert drawn_first != drawn_second


def test_each_rank_has_a_random_stream_of_its_own() -> None:
    draws = ranks.run(drawn, 2, UNEVEN)
    assert draws[0] != draws[1]


def drawn(given: dict[str, Any]) -> float:
    recipe = Recipe.model_validate(given)
    with joined(recipe.strategy) as world:
        build(recipe, world)
        return float(torch.rand(()))


class Gated(TensorData):
    """The 100th batch comes once the gate is there."""

    def __init__(self, samples: Tensor, targets: Tensor, gate: Path) -> None:
        super().__init__(samples, targets)
        self._gate = gate
        self._batches = 0

    def __getitems__(self, indices: list[int]) -> Batch:
        self._batches += 1
        if self._batches == 100:
            wait.until(self._gate.exists, seconds=ranks.PATIENCE_S, what="the gate")
        return super().__getitems__(indices)


def gated(gate: str) -> DataSets:
    """Some points of two classes, the same in every run; their number does not divide by two ranks or the batch."""
    samples = torch.randn(4038, 5, generator=torch.Generator().manual_seed(0))
    targets = (samples.sum(dim=1) > 0).long()
    train, validation = Gated(samples[37:], targets[37:], Path(gate)), TensorData(samples[:37], targets[:37])
    return DataSets(train=train, validation=validation, shape=Shape(sample=(5,), classes=2))


def test_a_stopped_run_resumes_exactly(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    recipe = {
        "model": {"name": "mlp", "hidden": [16], "dropout": 0.5},
        "data": {"name": "custom", "target": f"{__name__}:gated", "options": {"gate": str(gate)}},
        "optim": {"name": "adam", "lr": 0.001},
        "epochs": 2,
        "batch_size": 10,
        "log_every": 7,
    }
    gate.touch()
    undisturbed = attempt_of(tmp_path, "undisturbed", recipe)
    train(undisturbed)
    losses = undisturbed.series("train/loss")

    gate.unlink()
    stopped = attempt_of(tmp_path, "stopped", recipe)
    with ranks.started(main, 2, ["recipe.json"], environment=stopped.environment(), cwd=stopped.root) as started:
        wait.until(stopped.marks, seconds=60, what="the first poll")
        stopped.ask("stop")
        gate.touch()  # the ranks look at calls 5, 21, 85, 341 at the latest: before the end at 402
        started.results()
        said = [started.output(rank) for rank in range(2)]
    outcome = stopped.outcome()
    step = outcome["stopped_at_step"]
    assert 0 < step < max(losses)
    assert stopped.marks() == {"polled-0", "polled-1"}
    assert all(f"torchyard: stopped at step {step}" in output for output in said)
    assert stopped.checkpoints()[-1].name == f"step-{step:09d}"

    resumed = attempt_of(tmp_path, "resumed", recipe)
    train(resumed, restore=stopped.checkpoints()[-1])
    for name in ("train/loss", "val/loss", "val/accuracy"):
        assert {**stopped.series(name), **resumed.series(name)} == undisturbed.series(name)
        assert not stopped.series(name).keys() & resumed.series(name).keys()
    ends = [load(folder.checkpoints()[-1] / "model.pt") for folder in (undisturbed, resumed)]
    assert training.equal(*ends)


def train_with_room_for_its_own(given: dict[str, Any]) -> None:
    """Rank 1 can write no file as large as the model."""
    if os.environ["RANK"] == "1":
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    run(Recipe.model_validate(given))


def test_rank_0_alone_writes_the_model(tmp_path: Path) -> None:
    """Commonly taught wrong: every rank saves."""
    ranks.run(train_with_room_for_its_own, 2, {**UNEVEN, "model": {"name": "mlp", "hidden": [4096]}}, cwd=tmp_path)
    written = [folder / "model.pt" for folder in (tmp_path / "checkpoints").iterdir()]
    assert len(written) == 2
    assert all(file.stat().st_size > 128 << 10 for file in written)


def test_off_the_queue_with_loader_processes(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(json.dumps({**UNEVEN, "num_workers": 1, "epochs": 1}))
    with ranks.started(main, 2, ["recipe.yaml"], cwd=tmp_path) as started:
        started.results()
        assert "epoch 1/1  step 5  val/loss" in started.output(0)
    assert {file.name for file in (tmp_path / "checkpoints/step-000000005").iterdir()} == {
        "manifest.json",
        "model.pt",
        "rank-0.pt",
        "rank-1.pt",
        "training.pt",
    }
