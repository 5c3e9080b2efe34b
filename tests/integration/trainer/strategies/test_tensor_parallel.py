"""Linear layers in pieces train what whole ones train."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import training


def recipe(**changed: Any) -> dict[str, Any]:
    """Three linear layers: a pair and a single one of five outputs."""
    model = {"name": "mlp", "hidden": [24, 16]}
    data = {**training.SYNTHETIC, "classes": 5}
    return training.recipe("tensor_parallel", **{"model": model, "data": data, "epochs": 1, **changed})


def test_trains_what_one_process_trains(tmp_path: Path) -> None:
    given = recipe(accumulate=2, epochs=2)
    trained = training.train(given, 2, tmp_path / "run")
    weights, losses = training.alone(given, 20)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)

    total = sum(value.nbytes for value in weights.values())
    first, second = trained.proof["ranks"]
    for rank in (first, second):
        assert rank["mesh"] == {"data": 1, "tensor": 2}
        assert rank["split"] == {"1": "columns", "4": "rows", "7": "gathered columns"}
        assert rank["spread"] == {"tensor": 5, "whole": 1}
    # Five outputs are three and two; the second layer's bias is whole on both.
    assert first["parameter_bytes"]["cpu"] - second["parameter_bytes"]["cpu"] == 4 * (16 + 1)
    assert first["parameter_bytes"]["cpu"] + second["parameter_bytes"]["cpu"] == total + 4 * 16


def test_with_convolutions_dropout_clipping_and_average_as_a_single_process(tmp_path: Path) -> None:
    """Dropout between split layers falls as it would alone, for all ranks draw for the whole width."""
    given = recipe(
        model={"name": "digits_cnn", "channels": 4, "dropout": 0.3},
        data={"name": "synthetic", "samples": 50, "validation_samples": 37, "shape": [1, 6, 6]},
        clip_norm=0.5,
        ema_decay=0.9,
    )
    split = training.train(given, 2, tmp_path / "split")
    plain = training.train({**given, "strategy": "single"}, 1, tmp_path / "single")
    torch.testing.assert_close(split.whole, plain.whole, **training.CLOSE)
    for name in ("train/loss", "gradient_norm", "val/loss", "val/accuracy"):
        assert split.attempt.series(name) == pytest.approx(plain.attempt.series(name), rel=1e-4), name
    assert split.proof["ranks"][0]["spread"] == {"tensor": 3, "whole": 5}


def test_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    given = recipe(model={"name": "mlp", "hidden": [24], "dropout": 0.3}, optim="adam", ema_decay=0.9)
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    resumed = training.train(given, 2, tmp_path / "resumed", restore=whole.attempt.checkpoints()[5])
    assert training.equal(resumed.whole, whole.whole)


def test_bytes_follow_from_the_activations(tmp_path: Path) -> None:
    """Of 91 samples each pass sums the pair's output, gathers the last layer's, and sums the gradient of its input.

    What the evaluation moves is not training's.
    """
    trained = training.train(recipe(), 2, tmp_path / "run")
    forward, backward = 4 * (16 + 5 / 2), 4 * 16
    moved = 91 * (forward + backward) + 10 * 4 * 16  # and the bias that both have, in ten steps
    for rank in trained.proof["ranks"]:
        assert rank["bytes_sent_per_step"] == pytest.approx(moved / 10, rel=0.01)
