"""Resuming is exact: after any step, losses and weights are bitwise those of an undisturbed run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import attempt, training
from tests.support.attempt import AttemptFolder
from torchyard.injob import control, metrics
from torchyard.injob.exceptions import ResumeError
from trainer.command import main
from trainer.strategies.single import SingleStrategy

RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [8], "dropout": 0.5},
    "data": {"name": "synthetic", "samples": 23, "validation_samples": 7, "shape": [5]},
    "optim": {"name": "adam", "lr": 0.01},
    "schedule": {"name": "cosine"},
    "epochs": 2,
    "batch_size": 5,
    "log_every": 3,
}
EVERY_STEP = 1e-9

Train = Callable[..., AttemptFolder]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Train]:
    """Runs a recipe in this process, as the only rank of an attempt."""
    monkeypatch.setattr(control, "POLL_SECONDS", 0)
    # Threads that wait for each other on busy cores took five times what the trainings take.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    count = iter(range(1000))

    def run(recipe: dict[str, Any], ask: str | None = None, **options: Any) -> AttemptFolder:
        folder = AttemptFolder(tmp_path / f"attempt-{next(count)}")
        (folder.root / "recipe.json").write_text(json.dumps(recipe))
        if ask:
            folder.ask(ask)
        for _ in attempt.entered(folder, monkeypatch, **options):
            main([str(folder.root / "recipe.json")])
            assert metrics._recorder is not None
            metrics._recorder.flush()
        return folder

    yield run
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    loaded: dict[str, torch.Tensor] = torch.load(checkpoint / "model.pt", weights_only=True)
    return loaded


def from_step(series: dict[int, Any], step: int) -> dict[int, Any]:
    return {at: value for at, value in series.items() if at > step}


@pytest.mark.parametrize(
    "change", [{}, {"strategy": "single"}, {"optim": {"name": "sgd", "lr": 0.1}}], ids=["ddp", "single", "sgd"]
)
def test_from_every_step(train: Train, change: dict[str, Any]) -> None:
    recipe = {**RECIPE, **change}
    undisturbed = train(recipe)
    saved = train(recipe, checkpoint_every=EVERY_STEP)
    assert [path.name for path in undisturbed.checkpoints()] == ["step-000000005", "step-000000010"]
    assert len(saved.checkpoints()) == 10
    final = weights(undisturbed.checkpoints()[-1])
    for step, checkpoint in enumerate(saved.checkpoints()[:-1], start=1):
        resumed = train(recipe, restore=checkpoint)
        assert training.equal(weights(resumed.checkpoints()[-1]), final)
        for name in ("train/loss", "train/accuracy", "val/loss", "val/accuracy", "lr"):
            assert resumed.series(name) == from_step(undisturbed.series(name), step), (name, step)


# The child of the fork only loads data; Python 3.12 warns of the flush thread beside it.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_with_loader_processes(train: Train) -> None:
    recipe = {**RECIPE, "num_workers": 1, "epochs": 1}
    final = weights(train({**recipe, "num_workers": 0}).checkpoints()[-1])
    saved = train(recipe, checkpoint_every=EVERY_STEP)
    assert training.equal(weights(saved.checkpoints()[-1]), final)
    resumed = train(recipe, restore=saved.checkpoints()[2])
    assert training.equal(weights(resumed.checkpoints()[-1]), final)


def test_a_stop_in_evaluation_evaluates_again(train: Train) -> None:
    recipe = {**RECIPE, "batch_size": 23}  # one step an epoch: the first question comes in evaluation
    undisturbed = train(recipe)
    with pytest.raises(SystemExit) as left:
        train(recipe, ask="stop")
    assert left.value.code == 0
    folder = AttemptFolder(undisturbed.root.with_name("attempt-1"))
    assert folder.outcome() == {"stopped_at_step": 1}
    assert folder.series("val/loss") == {}
    resumed = train(recipe, restore=folder.checkpoints()[-1])
    assert resumed.series("val/loss") == undisturbed.series("val/loss")
    assert training.equal(weights(resumed.checkpoints()[-1]), weights(undisturbed.checkpoints()[-1]))


def test_a_checkpoint_asked_for_in_evaluation_waits_for_the_scores(train: Train) -> None:
    folder = train({**RECIPE, "batch_size": 23, "epochs": 1}, ask="checkpoint")
    (checkpoint,) = folder.checkpoints()
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    assert manifest["metrics"] == {name: folder.series(name)[1] for name in ("val/loss", "val/accuracy")}


def test_the_best_evaluation_is_saved_whatever_its_epoch(train: Train) -> None:
    recipe = {**RECIPE, "optim": {"name": "adam", "lr": 0.3}, "epochs": 7, "checkpoint_every": 7}
    folder = train(recipe, keep_best="min val/loss")
    losses = folder.series("val/loss")
    bests = [step for step in losses if losses[step] == min(value for at, value in losses.items() if at <= step)]
    assert bests[-1] < max(losses)  # the very case that a checkpoint of the last epoch does not save
    saved = [int(path.name.removeprefix("step-")) for path in folder.checkpoints()]
    assert saved == sorted({*bests, max(losses)})
    # Resumed from the best it is not beaten by what follows, and so nothing more is saved.
    resumed = train(recipe, restore=folder.checkpoints()[len(bests) - 1], keep_best="min val/loss")
    assert [path.name for path in resumed.checkpoints()] == [folder.checkpoints()[-1].name]


def test_every_nth_epoch_is_saved_and_the_last(train: Train) -> None:
    folder = train({**RECIPE, "epochs": 5, "checkpoint_every": 2})
    assert list(folder.series("val/loss")) == [5, 10, 15, 20, 25]
    assert [int(path.name.removeprefix("step-")) for path in folder.checkpoints()] == [10, 20, 25]


def test_a_metric_to_keep_by_that_is_none_is_told(train: Train, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"):
        train({**RECIPE, "epochs": 1}, keep_best="max accuracy")
    assert "keep_best: no evaluation has its metric: take one of val/loss, val/accuracy" in caplog.text


def test_another_number_of_ranks_goes_on(train: Train, tmp_path: Path) -> None:
    two = training.train({**RECIPE, "batch_size": 2}, 2, tmp_path / "two", checkpoint_every=EVERY_STEP)
    checkpoint = two.attempt.checkpoints()[2]
    assert checkpoint.name == "step-000000003"
    resumed = train({**RECIPE, "batch_size": 4, "log_every": 1}, restore=checkpoint)
    losses = resumed.series("train/loss")
    assert list(losses) == list(range(4, max(losses) + 1))


def test_ranks_are_aligned_before_every_checkpoint(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before those that are due by time in epochs of one step, which are neither evaluated nor saved."""
    aligned: list[None] = []
    monkeypatch.setattr(SingleStrategy, "align", lambda _: aligned.append(None))
    recipe = {**RECIPE, "batch_size": 23, "epochs": 4, "evaluate_every": 9, "checkpoint_every": 9}
    folder = train({**recipe, "strategy": "single"}, checkpoint_every=EVERY_STEP)
    # The last epoch is evaluated, too.
    assert (len(folder.checkpoints()), len(aligned)) == (4, 5)


def test_more_epochs_later(train: Train) -> None:
    constant = {**RECIPE, "schedule": "constant"}
    short = train(constant)
    resumed = train({**constant, "epochs": 3}, restore=short.checkpoints()[-1])
    longer = train({**constant, "epochs": 3})
    assert training.equal(weights(resumed.checkpoints()[-1]), weights(longer.checkpoints()[-1]))


def test_an_epoch_of_other_data_begins_anew_and_says_so(train: Train, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint = train(RECIPE, checkpoint_every=EVERY_STEP).checkpoints()[6]  # two steps of the second epoch are done
    fewer = {**RECIPE, "data": {**RECIPE["data"], "samples": 8}}
    resumed = train(fewer, restore=checkpoint)
    assert list(resumed.series("val/loss")) == [7 + 2]
    assert "the data or the seed are not those of the checkpoint: its epoch begins anew" in caplog.messages


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "mlp"}, r"model: the checkpoint holds .*the recipe says"),
        ({"optim": "adamw"}, "optim: the checkpoint holds adam, the recipe says adamw"),
        ({"ema_decay": 0.9}, "ema_decay: the checkpoint holds no average, the recipe says an average: resume with"),
        ({"strategy": "fsdp"}, "strategy: the checkpoint holds a whole model, the recipe says shards: resume with"),
        ({"precision": "fp16"}, "precision: the checkpoint holds no loss scale for fp16: take bf16"),
        ({"data": {"name": "synthetic", "shape": [6]}}, r"there is 1.weight \(8, 5\), here \(8, 6\)"),
    ],
)
def test_another_recipe_is_refused(train: Train, change: dict[str, Any], message: str) -> None:
    checkpoint = train(RECIPE).checkpoints()[-1]
    with pytest.raises(ResumeError, match=message):
        train({**RECIPE, **change}, restore=checkpoint)
