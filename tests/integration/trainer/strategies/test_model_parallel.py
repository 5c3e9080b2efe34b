"""A model split over places trains what it trains whole; data parallelism over it, and how the two are told apart."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import training


def recipe(replicas: int = 1, **changed: Any) -> dict[str, Any]:
    return training.recipe({"name": "model_parallel", "data_parallel": replicas, "devices": 2}, **changed)


def test_one_replica_trains_the_very_same_bits(tmp_path: Path) -> None:
    """On the CPU the split model computes what the whole one does, and so do its scores and its norms."""
    given = recipe(clip_norm=0.5, ema_decay=0.9, accumulate=2)
    split = training.train(given, 1, tmp_path / "split")
    plain = training.train({**given, "strategy": "single"}, 1, tmp_path / "single")
    assert list(split.whole) == list(plain.whole)
    assert training.equal(split.whole, plain.whole)
    for name in ("train/loss", "gradient_norm", "val/loss", "val/accuracy"):
        assert split.attempt.series(name) == plain.attempt.series(name)

    (rank,) = split.proof["ranks"]
    assert [(place["place"], place["device"], place["layers"]) for place in rank["places"]] == [
        (0, "cpu", ["0", "1", "2", "3"]),
        (1, "cpu", ["4", "5", "6", "7", "8", "9", "10"]),
    ]
    total = sum(value.nbytes for value in plain.whole.values())
    assert sum(place["parameter_bytes"] for place in rank["places"]) == total
    assert rank["activation_bytes_moved"] == (2 * 91 + 2 * 37) * 24 * 4
    assert rank["bytes_sent_per_step"] == 0


def test_replicas_train_what_one_process_trains(tmp_path: Path) -> None:
    given = recipe(replicas=2, accumulate=2)
    trained = training.train(given, 2, tmp_path / "run")
    weights, losses = training.alone(given, 40)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)
    assert training.equal(*trained.own)
    size = sum(value.nbytes for value in weights.values())
    assert [(rank["replica"], rank["replicas"]) for rank in trained.proof["ranks"]] == [(0, 2), (1, 2)]
    for rank in trained.proof["ranks"]:
        held = [place["parameter_bytes"] for place in rank["places"]]
        assert (len(held), sum(held)) == (2, size)
        assert min(held) > 0
    # A ring all-reduce between two: half of the gradients, twice.
    assert {rank["bytes_sent_per_step"] for rank in trained.proof["ranks"]} == {size}


def test_resumed_at_any_step_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    given = recipe(
        replicas=2, model={"name": "mlp", "hidden": [24], "dropout": 0.3}, optim="adam", ema_decay=0.9, clip_norm=1.0
    )
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    points = whole.attempt.checkpoints()
    for point in points[:2]:
        resumed = training.train(given, 2, tmp_path / point.name, restore=point)
        assert training.equal(resumed.whole, whole.whole), point
    # The checkpoint is portable: the whole model goes on in one process.
    assert training.train({**given, "strategy": "single"}, 1, tmp_path / "single", restore=points[0]).losses()


def test_it_is_not_data_parallelism_nor_that_model_parallelism(tmp_path: Path) -> None:
    """Two VGGs on two devices each: halves of one model, or whole models that exchange gradients."""
    vgg = recipe(
        model="tiny_vgg",
        data={"name": "synthetic", "samples": 12, "validation_samples": 4, "shape": [3, 16, 16]},
        batch_size=4,
        epochs=1,
    )
    split = training.train(vgg, 1, tmp_path / "split")
    copies = training.train({**vgg, "strategy": "ddp"}, 2, tmp_path / "ddp")
    total = sum(value.nbytes for value in split.whole.values())

    (process,) = split.proof["ranks"]
    first, second = [place["parameter_bytes"] for place in process["places"]]
    assert first + second == total
    assert min(first, second) > 0
    assert first != second
    assert process["replicas"] == 1

    assert [rank["parameter_bytes"] for rank in copies.proof["ranks"]] == [{"cpu": total}] * 2
    assert all("places" not in rank for rank in copies.proof["ranks"])
