"""One model from checkpoints of real runs, whatever strategy wrote them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support import training
from trainer.average import main, read

AVERAGED: dict[str, Any] = {"ema_decay": 0.5, "epochs": 2}


def mean_of(checkpoints: list[Path], out: Path) -> dict[str, Tensor]:
    main(["--out", str(out), *map(str, checkpoints)])
    loaded: dict[str, Tensor] = torch.load(out, weights_only=True)
    return loaded


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "pipeline"])
def test_moving_averages_are_left_out(strategy: str, tmp_path: Path) -> None:
    size = {"batch_size": 12} if strategy == "pipeline" else {}
    trained = training.train(training.recipe(strategy, **AVERAGED, **size), 2, tmp_path / "run")
    first, last = trained.attempt.checkpoints()
    found = mean_of([first, last], tmp_path / "mean.pt")
    assert found.keys() == trained.whole.keys()
    for name, value in found.items():
        torch.testing.assert_close(value, (read(first)[name] + trained.whole[name]) / 2)


def test_runs_of_different_strategies_have_a_mean(tmp_path: Path) -> None:
    runs = [
        training.train(training.recipe(strategy, **AVERAGED), 2, tmp_path / strategy) for strategy in ("ddp", "fsdp")
    ]
    plain = training.train(training.recipe("ddp", epochs=1), 2, tmp_path / "plain")
    last = [run.attempt.checkpoints()[-1] for run in [*runs, plain]]
    assert mean_of(last, tmp_path / "mean.pt").keys() == plain.whole.keys()
