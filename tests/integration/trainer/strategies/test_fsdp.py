"""Fully sharded training gives what one process gives, with a part of the memory."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import training

#: Gradients are averaged over ranks in another order than a whole batch's are summed.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
DATA = {"name": "synthetic", "samples": 91, "validation_samples": 37}


def recipe(tensor: int = 1, **changed: Any) -> dict[str, Any]:
    """91 samples in batches of 10 a share, validated on 37: nothing comes out even."""
    return {
        "model": {"name": "mlp", "hidden": [24, 20, 16]},
        "data": DATA,
        "optim": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
        "strategy": {"name": "fsdp", "tensor_parallel": tensor},
        "epochs": 2,
        "batch_size": 10,
        "log_every": 1,
        **changed,
    }


@pytest.mark.parametrize(("world", "tensor"), [(2, 1), (2, 2), (4, 2)])
def test_trains_what_one_process_trains(world: int, tensor: int, tmp_path: Path) -> None:
    given = recipe(tensor, accumulate=2)
    groups = world // tensor
    trained = training.train(given, world, tmp_path / "run")
    weights, losses = training.alone(given, 20 * groups)
    torch.testing.assert_close(trained.whole, weights, **CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)

    total = sum(value.nbytes for value in weights.values())
    for rank in trained.proof["ranks"]:
        assert rank["mesh"] == {"data": groups, "tensor": tensor}
        assert rank["whole_parameter_bytes"] == total
        assert rank["units"] == ["1", "4", "7", "10"]
        assert rank["split"] == ({"1": "columns", "4": "rows", "7": "columns", "10": "rows"} if tensor > 1 else {})
        # Two biases are whole in a tensor group; ranks have their pieces of all else.
        assert rank["spread"] == ({"data": 8} if tensor == 1 else {"dataxtensor": 6, "data": 2})
    held = sum(rank["parameter_bytes"]["cpu"] for rank in trained.proof["ranks"])
    assert held == total + (tensor - 1) * 4 * (20 + 10)


def test_clipped_with_uneven_pieces_and_images(tmp_path: Path) -> None:
    """Channels that do not divide by the ranks, convolutions, a norm over all pieces, and exact scores."""
    given = recipe(
        model={"name": "digits_cnn", "channels": 3, "dropout": 0},
        data={**DATA, "shape": [1, 6, 6]},
        strategy={"name": "fsdp", "reshard_after_forward": False},
        clip_norm=0.5,
        epochs=1,
    )
    sharded = training.train(given, 2, tmp_path / "fsdp")
    plain = training.train({**given, "strategy": "ddp"}, 2, tmp_path / "ddp")
    torch.testing.assert_close(sharded.whole, plain.whole, **CLOSE)
    for name in ("train/loss", "gradient_norm", "val/loss", "val/accuracy"):
        assert sharded.attempt.series(name) == pytest.approx(plain.attempt.series(name), rel=1e-4), name


def test_resumed_at_any_step_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    given = recipe(
        2, model={"name": "mlp", "hidden": [24], "dropout": 0.3}, optim="adam", ema_decay=0.9, clip_norm=1.0, epochs=1
    )
    whole = training.train(given, 4, tmp_path / "whole", checkpoint_every=1e-9)
    points = whole.attempt.checkpoints()
    assert len(points) == 5
    for number in (0, 2):
        resumed = training.train(given, 4, tmp_path / str(number), restore=points[number])
        assert all(torch.equal(resumed.whole[name], value) for name, value in whole.whole.items()), number
        series = whole.attempt.series("train/loss")
        assert resumed.attempt.series("train/loss") == {step: series[step] for step in series if step > number + 1}


@pytest.mark.parametrize(("world", "tensor"), [(1, 1), (4, 1), (4, 2)])
def test_another_number_of_ranks_goes_on(world: int, tensor: int, tmp_path: Path) -> None:
    given = recipe(optim="adam", global_batch_size=20, ema_decay=0.9, epochs=1)
    del given["batch_size"]
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    changed = {**given, "strategy": {"name": "fsdp", "tensor_parallel": tensor}}
    resumed = training.train(changed, world, tmp_path / "on", restore=whole.attempt.checkpoints()[2])
    torch.testing.assert_close(resumed.whole, whole.whole, **CLOSE)
    assert list(resumed.attempt.series("train/loss")) == [4, 5]
    assert resumed.attempt.series("val/loss") == pytest.approx(whole.attempt.series("val/loss"), rel=1e-4)
