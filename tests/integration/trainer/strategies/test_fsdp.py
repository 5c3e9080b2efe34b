"""Fully sharded training gives what one process gives, with a part of the memory."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import training
from torchyard.injob import layout


def recipe(tensor: int = 1, **changed: Any) -> dict[str, Any]:
    return training.recipe({"name": "fsdp", "tensor_parallel": tensor}, **changed)


def normalised() -> nn.Module:
    """Convolutions of three channels, which two ranks cannot share evenly, and statistics over batches."""
    return nn.Sequential(
        *(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True)),
        *(nn.Flatten(), nn.Linear(108, 16), nn.ReLU(), nn.Linear(16, 10)),
    )


class Scaled(nn.Sequential):
    """A model with a parameter of its own, beside those of its layers."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.scale = nn.Parameter(torch.ones(64))

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = super().forward(inputs.flatten(1) * self.scale)
        return outputs


def scaled() -> nn.Module:
    return Scaled(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))


@pytest.mark.parametrize(("world", "tensor"), [(2, 1), (4, 2)])
def test_trains_what_one_process_trains(world: int, tensor: int, tmp_path: Path) -> None:
    given = recipe(tensor, accumulate=2)
    groups = world // tensor
    trained = training.train(given, world, tmp_path / "run")
    weights, losses = training.alone(given, 20 * groups)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
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


@pytest.mark.parametrize("reshard", [True, False])
def test_bytes_are_those_of_the_gathers_and_the_reduction(reshard: bool, tmp_path: Path) -> None:
    strategy = {"name": "fsdp", "reshard_after_forward": reshard}
    trained = training.train(training.recipe(strategy, epochs=1), 2, tmp_path / "run")
    for rank in trained.proof["ranks"]:
        piece = rank["parameter_bytes"]["cpu"]
        # A gather for forward, perhaps one for backward, and a reduction; nothing of the evaluation. A percent for
        # pieces that are filled up.
        assert rank["bytes_sent_per_step"] == pytest.approx((3 if reshard else 2) * piece, rel=0.01)


def test_statistics_clipping_and_uneven_pieces(tmp_path: Path) -> None:
    """As under ddp: a norm over all pieces, exact scores, the running statistics of rank 0 on all ranks."""
    given = recipe(
        model={"name": "custom", "target": f"{__name__}:normalised"},
        data={**training.SYNTHETIC, "shape": [1, 6, 6]},
        clip_norm=0.5,
        epochs=1,
    )
    sharded = training.train(given, 2, tmp_path / "fsdp", checkpoint_every=1e-9)
    plain = training.train({**given, "strategy": "ddp"}, 2, tmp_path / "ddp")
    torch.testing.assert_close(sharded.whole, plain.whole, **training.CLOSE)
    for name in ("train/loss", "gradient_norm", "val/loss", "val/accuracy"):
        assert sharded.attempt.series(name) == pytest.approx(plain.attempt.series(name), rel=1e-4), name
    first, second = sharded.own
    assert torch.equal(first["1.running_var"], second["1.running_var"])

    resumed = training.train(given, 2, tmp_path / "resumed", restore=sharded.attempt.checkpoints()[1])
    assert training.equal(resumed.whole, sharded.whole)
    half = training.train({**given, "precision": "bf16"}, 2, tmp_path / "half")
    torch.testing.assert_close(half.whole, plain.whole, rtol=0, atol=1e-2)


@pytest.mark.parametrize("reshard", [True, False])
def test_an_evaluation_of_averages_leaves_none_for_the_training(reshard: bool, tmp_path: Path) -> None:
    """No checkpoint comes in between, for which parameters would be given up in any case."""
    given = training.recipe(
        {"name": "fsdp", "reshard_after_forward": reshard},
        model={"name": "custom", "target": f"{__name__}:scaled"},
        ema_decay=0.5,
        checkpoint_every=2,
    )
    trained = training.train(given, 2, tmp_path)
    weights, losses = training.alone(given, 20)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-5)


def test_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    model = {"name": "mlp", "hidden": [24], "dropout": 0.3}
    given = recipe(2, model=model, optim="adam", ema_decay=0.9, clip_norm=1.0, epochs=1)
    whole = training.train(given, 4, tmp_path / "whole", checkpoint_every=1e-9)
    resumed = training.train(given, 4, tmp_path / "resumed", restore=whole.attempt.checkpoints()[2])
    assert training.equal(resumed.whole, whole.whole)
    for name in ("train/loss", "val/loss", "gradient_norm"):
        series = whole.attempt.series(name)
        assert resumed.attempt.series(name) == {step: series[step] for step in series if step > 3}


@pytest.mark.parametrize(
    ("world", "strategy"),
    [(1, "fsdp"), (4, {"name": "fsdp", "tensor_parallel": 2}), (1, "single"), (2, "ddp"), (3, "ring")],
    ids=str,
)
def test_another_number_of_ranks_and_a_whole_model_go_on(world: int, strategy: Any, tmp_path: Path) -> None:
    given = recipe(optim="adam", global_batch_size=20, ema_decay=0.9, epochs=1)
    del given["batch_size"]
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    point = whole.attempt.checkpoints()[2]
    resumed = training.train({**given, "strategy": strategy}, world, tmp_path / "on", restore=point)
    torch.testing.assert_close(resumed.whole, whole.whole, **training.CLOSE)
    assert list(resumed.attempt.series("train/loss")) == [4, 5]
    # Scores are those of the averaged weights.
    assert resumed.attempt.series("val/loss") == pytest.approx(whole.attempt.series("val/loss"), rel=1e-4)
    left = torch.load(resumed.attempt.root / layout.OUTPUT / "ema.pt", weights_only=True)
    averaged = torch.load(whole.attempt.root / layout.OUTPUT / "ema.pt", weights_only=True)
    torch.testing.assert_close(left, averaged, **training.CLOSE)
