"""Loader processes begin with the next epoch while the model is evaluated; what is trained stays the same."""

import multiprocessing
import random
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.utils.data import Dataset

from tests.support import ranks, training
from tests.support.attempt import AttemptFolder
from torchyard.injob import control
from torchyard.recipe import Recipe
from trainer.data import DataSets, Shape
from trainer.distributed.process_group import joined
from trainer.loop import training as loop
from trainer.loop.components import build

RECIPE = {
    "model": {"name": "mlp", "hidden": [8], "dropout": 0.3},
    "data": {"name": "synthetic", "samples": 23, "validation_samples": 7},
    "strategy": "single",
    "epochs": 3,
    "batch_size": 8,
}
AHEAD = {**RECIPE, "num_workers": 1}


def watched(given: dict[str, Any], attempt: AttemptFolder, stops: bool) -> tuple[list[int], dict[str, Tensor]]:
    """Trains; also answers how many loader processes there were when each evaluation began. May be stopped in one."""
    seen, evaluate = [], loop.evaluate

    def watch(*arguments: Any) -> dict[str, float]:
        seen.append(len(multiprocessing.active_children()))
        if stops:
            attempt.ask("stop")
        return evaluate(*arguments)

    loop.evaluate, control.POLL_SECONDS = watch, 0
    recipe = Recipe.model_validate(given)
    with joined(recipe.strategy) as world:
        components = build(recipe, world)
        loop.Training(components).run()
        return seen, components.strategy.whole_state()


def test_the_next_epoch_is_being_loaded_in_evaluation(tmp_path: Path) -> None:
    """All but the last one's; the weights are those of a run that loads everything in its turn."""
    attempt = AttemptFolder(tmp_path / "ahead")
    ((seen, ahead),) = ranks.run(watched, 1, AHEAD, attempt, False, environment=attempt.environment())
    assert seen == [1, 1, 0]
    in_turn = training.train(RECIPE, 1, tmp_path / "in-turn")
    assert training.equal(in_turn.whole, ahead)


def test_a_resumed_run_loads_what_it_would_have_loaded(tmp_path: Path) -> None:
    """Stopped in the first evaluation, with the second epoch begun."""
    attempt = AttemptFolder(tmp_path / "stopped")
    assert ranks.run(watched, 1, AHEAD, attempt, True, environment=attempt.environment()) == [None]
    (point,) = attempt.checkpoints()
    resumed = training.train(AHEAD, 1, tmp_path / "resumed", restore=point)
    assert training.equal(resumed.whole, training.train(AHEAD, 1, tmp_path / "whole").whole)


class Noisy(Dataset[tuple[Tensor, int]]):
    """Samples with noise from each of the streams that there are."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        noise = torch.rand(()) + random.random() + numpy.random.rand()
        return torch.full((4,), index / 20) + noise, index % 2


def noisy() -> DataSets:
    return DataSets(train=Noisy(), validation=Noisy(), shape=Shape(sample=(4,), classes=2))


def test_chance_of_a_jobs_own_data_resumes_within_an_epoch(tmp_path: Path) -> None:
    given = {**AHEAD, "data": {"name": "custom", "target": f"{__name__}:noisy"}, "batch_size": 4, "epochs": 1}
    whole = training.train(given, 1, tmp_path / "whole", checkpoint_every=1e-9)
    resumed = training.train(given, 1, tmp_path / "resumed", restore=whole.attempt.checkpoints()[1])
    assert training.equal(resumed.whole, whole.whole)
    assert resumed.attempt.series("val/loss") == whole.attempt.series("val/loss")
