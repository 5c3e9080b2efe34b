"""Pipelines train what one process trains; their stages are real, and go on with another number of ranks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import ranks, training
from torchyard.recipe import Recipe
from trainer.distributed.process_group import joined
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.strategies.pipeline import PipelineStrategy

#: A norm that no gradient reaches.
UNREACHED = 10_000


def recipe(schedule: str = "gpipe", strategy: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """The last of 91 samples in batches of 10 is padded, as are 37 for validation."""
    return training.recipe({"name": "pipeline", "schedule": schedule, "microbatches": 2, **(strategy or {})}, **changed)


def single(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "strategy": "single"}


def parameter_bytes(state: dict[str, Tensor]) -> int:
    return sum(value.nbytes for value in state.values())


@pytest.mark.parametrize(
    ("schedule", "world", "microbatches"), [("gpipe", 2, 5), ("1f1b", 3, 5), ("interleaved", 2, 2), ("gpipe", 1, 2)]
)
def test_it_trains_what_one_process_trains(schedule: str, world: int, microbatches: int, tmp_path: Path) -> None:
    given = recipe(schedule, accumulate=2, strategy={"microbatches": microbatches})
    trained = training.train(given, world, tmp_path / "run")
    weights, losses = training.alone(given, 20)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert list(trained.whole) == list(weights)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)

    # Each parameter is on one rank only, and on all of them together there is the model.
    assert sum(map(len, trained.own)) == len(weights)
    ranks = trained.proof["ranks"]
    assert [each["parameter_bytes"]["cpu"] for each in ranks] == [parameter_bytes(own) for own in trained.own]
    assert sum(each["parameter_bytes"]["cpu"] for each in ranks) == parameter_bytes(weights)
    stages = sorted((stage["stage"], rank["rank"]) for rank in ranks for stage in rank["stages"])
    count = 2 * world if schedule == "interleaved" else world
    assert stages == [(stage, stage % world) for stage in range(count)]
    assert {rank["schedule"] for rank in ranks} == {schedule}


def passes(given: dict[str, Any]) -> str:
    """Forward and backward passes of this rank's stages in one step, in their order: F0 is the first stage's."""
    parsed = Recipe.model_validate(given)
    with joined(parsed.strategy) as world:
        run = Training(build(parsed, world))
        strategy = run.components.strategy
        assert isinstance(strategy, PipelineStrategy)
        seen: list[str] = []
        for stage in strategy.training:
            stage.forward_one_chunk = _noted(stage.forward_one_chunk, f"F{stage.stage_index}", seen)
            stage.backward_one_chunk = _noted(stage.backward_one_chunk, f"B{stage.stage_index}", seen)
        strategy.backward(next(run.batches(0)))
        return " ".join(seen)


def _noted(call: Callable[..., Any], what: str, seen: list[str]) -> Callable[..., Any]:
    def noting(*arguments: Any, **options: Any) -> Any:
        seen.append(what)
        return call(*arguments, **options)

    return noting


@pytest.mark.parametrize(
    ("schedule", "first", "last"),
    [
        ("gpipe", "F0 F0 F0 F0 B0 B0 B0 B0", "F1 F1 F1 F1 B1 B1 B1 B1"),
        ("1f1b", "F0 F0 B0 F0 B0 F0 B0 B0", "F1 B1 F1 B1 F1 B1 F1 B1"),
        (
            "interleaved",
            "F0 F0 F2 F2 F0 B2 F0 B2 F2 B0 F2 B0 B2 B2 B0 B0",
            "F1 F1 F3 B3 F3 B3 F1 B1 F1 B1 F3 B3 F3 B3 B1 B1",
        ),
    ],
)
def test_microbatches_pass_in_the_order_of_the_schedule(schedule: str, first: str, last: str) -> None:
    """GPipe holds the activations of all microbatches, 1F1B those of as many as there are stages."""
    given = recipe(schedule, strategy={"microbatches": 4}, batch_size=8)
    assert ranks.run(passes, 2, given) == [first, last]


def test_scores_and_gradients_are_those_of_one_process(tmp_path: Path) -> None:
    """Clipping must see the norm over all stages; the padding of 37 samples must not count."""
    given = recipe("1f1b", clip_norm=0.5, ema_decay=0.9, optim={"name": "adam", "lr": 0.01})
    pipeline = training.train(given, 2, tmp_path / "pipeline")
    plain = training.train(single(given), 1, tmp_path / "single")
    torch.testing.assert_close(pipeline.whole, plain.whole, rtol=1e-3, atol=1e-5)
    for name in ("gradient_norm", "val/loss", "val/accuracy", "train/loss", "train/accuracy"):
        here, there = pipeline.attempt.series(name), plain.attempt.series(name)
        assert here.keys() == there.keys()
        assert list(here.values()) == pytest.approx(list(there.values()), rel=1e-3), name


def test_activations_and_gradients_sent_are_counted(tmp_path: Path) -> None:
    """Bytes per step: 10 samples through the boundary, whose width is a hidden layer's; half of it in bf16."""
    sent = {}
    for precision in ("fp32", "bf16"):
        trained = training.train(recipe(epochs=1, precision=precision), 2, tmp_path / precision)
        sent[precision] = [each["bytes_sent_per_step"] for each in trained.proof["ranks"]]
        assert trained.losses()[-1] < trained.losses()[0]
    assert sent == {"fp32": [10 * 24 * 4] * 2, "bf16": [10 * 24 * 2] * 2}


def three_layers() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.ReLU(inplace=True))


def test_stages_without_parameters_take_part(tmp_path: Path) -> None:
    """Their optimizers and moving averages have nothing to do; what a stage has received it does not overwrite."""
    model = {"name": "custom", "target": f"{__name__}:three_layers"}
    given = recipe(model=model, ema_decay=0.9, clip_norm=UNREACHED)
    trained = training.train(given, 3, tmp_path / "run")
    weights, losses = training.alone(given, 10)
    assert [len(own) for own in trained.own] == [0, 2, 0]
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)


def test_images_in_any_layout_pass_through(tmp_path: Path) -> None:
    given = recipe("interleaved", model={"name": "digits_cnn", "channels": 4, "dropout": 0.0}, channels_last=True)
    trained = training.train(given, 2, tmp_path / "run")
    weights, losses = training.alone(given, 10)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_resumed_at_any_step_it_ends_with_the_same_bits(schedule: str, tmp_path: Path) -> None:
    """With dropout: each rank's random stream goes on where it was."""
    model = {"name": "mlp", "hidden": [24, 20], "dropout": 0.3}
    data = {"name": "synthetic", "samples": 51, "validation_samples": 7}
    given = recipe(schedule, model=model, data=data, accumulate=2, ema_decay=0.9, clip_norm=1.0)
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    points = whole.attempt.checkpoints()
    # A save that is due while one is being written is left out.
    for point in points[:-1:2] if schedule == "1f1b" else points[:1]:
        resumed = training.train(given, 2, tmp_path / point.name, restore=point)
        assert training.equal(resumed.whole, whole.whole), point


def test_it_goes_on_with_another_number_of_stages(tmp_path: Path) -> None:
    """Adam's moments move with their parameters to whichever rank has them now."""
    data = {"name": "synthetic", "samples": 51, "validation_samples": 7}
    given = recipe(data=data, optim={"name": "adam", "lr": 0.01}, accumulate=2)
    two = training.train(given, 2, tmp_path / "two", checkpoint_every=1e-9)
    for world in (1, 3):
        resumed = training.train(given, world, tmp_path / str(world), restore=two.attempt.checkpoints()[0])
        torch.testing.assert_close(resumed.whole, two.whole, rtol=1e-3, atol=1e-5)
