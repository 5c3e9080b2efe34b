"""What ddp, broadcast and ring have in common: a replica on each rank, gradients averaged over all of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import ranks, training
from torchyard.recipe import Recipe
from trainer.data.loading import Batch
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.loop.components import build
from trainer.numerics import compute
from trainer.optimization.objective import CLASSIFICATION
from trainer.strategies import STRATEGIES, Strategy, TrainingTask

RANKS = 3
STRATEGY = pytest.mark.parametrize("strategy", ["ddp", "broadcast", "ring"])


def recipe(strategy: Any, **changed: Any) -> dict[str, Any]:
    return training.recipe(strategy, **{"batch_size": 4, **changed})


def resumable(strategy: Any, **changed: Any) -> dict[str, Any]:
    """Eight steps in two epochs, with chance on every rank; wide enough that the order of additions shows."""
    model = {"name": "mlp", "hidden": [40, 30], "dropout": 0.5}
    data = {"name": "synthetic", "samples": 23, "validation_samples": 7, "shape": [5]}
    return recipe(strategy, model=model, data=data, optim={"name": "adam", "lr": 0.01}, batch_size=2, **changed)


def model_bytes(state: dict[str, Tensor]) -> int:
    return sum(value.nbytes for value in state.values())


@STRATEGY
def test_parameters_are_equal_on_all_ranks_and_those_of_one_process(strategy: str, tmp_path: Path) -> None:
    """Commonly taught wrong: models that are never wrapped drift apart, and are made anew in each epoch.

    Momentum from the first epoch must live on in the second for the weights to match, under accumulation too.
    """
    given = recipe(strategy, accumulate=2)
    trained = training.train(given, RANKS, tmp_path / "run")
    assert all(training.equal(own, trained.own[0]) for own in trained.own)

    weights, losses = training.alone(given, 2 * 4 * RANKS)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)

    scores, last = training.scores(given, trained.whole), len(losses)
    for name, value in scores.items():
        assert trained.attempt.series(f"val/{name}")[last] == pytest.approx(value, rel=1e-6)

    # A full replica on every rank: data parallelism does not split the model.
    held = [rank["parameter_bytes"] for rank in trained.proof["ranks"]]
    assert held == [{"cpu": model_bytes(weights)}] * RANKS


@STRATEGY
def test_clipping_sees_the_norm_of_the_whole_batch(strategy: str, tmp_path: Path) -> None:
    given = recipe(strategy, clip_norm=0.3, ema_decay=0.9, optim={"name": "adam", "lr": 0.01}, epochs=1)
    trained = training.train(given, 2, tmp_path / "ranks")
    plain = training.train({**given, "strategy": "single", "batch_size": 8}, 1, tmp_path / "single")
    torch.testing.assert_close(trained.whole, plain.whole, rtol=1e-3, atol=1e-5)
    for name in ("gradient_norm", "train/loss", "val/loss", "val/accuracy"):
        here, there = trained.attempt.series(name), plain.attempt.series(name)
        assert list(here.values()) == pytest.approx(list(there.values()), rel=1e-3), name
    assert max(trained.attempt.series("gradient_norm").values()) > 0.3


@pytest.mark.parametrize(("strategy", "steps"), [("ddp", (1, 3, 4)), ("broadcast", (3,)), ("ring", (4,))])
def test_a_run_resumed_after_any_step_is_bitwise_the_same(
    strategy: str, steps: tuple[int, ...], tmp_path: Path
) -> None:
    """After the first step, in mid-epoch, between epochs; DDP lays out its buckets anew each time."""
    given = resumable(strategy)
    whole = training.train(given, RANKS, tmp_path / "whole", checkpoint_every=1e-9)
    checkpoints = whole.attempt.checkpoints()
    assert len(checkpoints) == 8
    for done in steps:
        resumed = training.train(given, RANKS, tmp_path / f"from-{done}", restore=checkpoints[done - 1])
        assert all(training.equal(here, there) for here, there in zip(resumed.own, whole.own, strict=True)), done
        assert resumed.losses() == whole.losses()[done:]


@STRATEGY
def test_a_run_goes_on_with_fewer_ranks(strategy: str, tmp_path: Path) -> None:
    """At one effective batch and without dropout the weights are those of a run that kept its ranks."""
    given = {**recipe(strategy), "global_batch_size": 12}
    del given["batch_size"]
    whole = training.train(given, RANKS, tmp_path / "whole", checkpoint_every=1e-9)
    resumed = training.train(given, 2, tmp_path / "resumed", restore=whole.attempt.checkpoints()[2])
    torch.testing.assert_close(resumed.whole, whole.whole, **training.CLOSE)


def beginning(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """A rank's initial weights, and the dropout mask that it draws first."""
    parsed = Recipe.model_validate(given)
    with joined(parsed.strategy) as world:
        components = build(parsed, world)
        weights = nn.utils.parameters_to_vector(components.strategy.model.parameters()).detach()
        return weights, nn.functional.dropout(torch.ones(100))


@STRATEGY
def test_ranks_begin_alike_and_draw_each_its_own_dropout(strategy: str) -> None:
    """Commonly taught wrong: one seed on all ranks gives every rank the same dropout and augmentation."""
    begun = ranks.run(beginning, RANKS, recipe(strategy))
    assert all(torch.equal(weights, begun[0][0]) for weights, _ in begun)
    masks = [mask for _, mask in begun]
    assert not any(torch.equal(masks[one], masks[other]) for one, other in ((0, 1), (0, 2), (1, 2)))


def prepared(given: dict[str, Any], model: nn.Module, world: World) -> Strategy:
    """A strategy with a model that no recipe has."""
    parsed = Recipe.model_validate(given)
    name = parsed.strategy.name
    strategy = STRATEGIES[name](parsed.strategy, world)
    task = TrainingTask(
        objective=CLASSIFICATION,
        make_optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        numerics=compute.numerics_for(parsed, world.device),
        share_size=4,
        sample_shape=(3,),
    )
    strategy.prepare(model, task)
    return strategy


def step(strategy: Strategy, factor: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(strategy.world.rank)
    inputs, targets = factor * torch.randn(4, 3, generator=generator), torch.tensor([0, 1, 0, 1])
    count = 4 * strategy.world.size
    strategy.backward(Batch(inputs=inputs, targets=targets, count=4, step_size=count, last=True))
    strategy.update(0.1, measure=False)


def normalised(name: str) -> tuple[list[Tensor], list[Tensor], int, int]:
    """Parameters and buffers after three steps; bytes sent, and those of parameters and buffers."""
    with joined() as world:
        torch.manual_seed(world.rank)  # even ranks that begin apart are brought together
        strategy = prepared(
            {"strategy": name}, nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), world
        )
        for _ in range(3):
            step(strategy)
        strategy.align()
        parameters = [parameter.detach() for parameter in strategy.model.parameters()]
        buffers = [buffer.clone() for buffer in strategy.model.buffers()]
        return parameters, buffers, strategy.bytes_sent, sum(each.nbytes for each in buffers)


@STRATEGY
def test_evaluation_sees_the_statistics_of_the_checkpoint(strategy: str) -> None:
    """BatchNorm's running statistics are rank 0's on every rank: else scores are those of no one model."""
    results = ranks.run(normalised, 2, strategy)
    (parameters, buffers, sent, _), (others, others_buffers, others_sent, extra) = results
    assert all(map(torch.equal, parameters, others))
    assert all(map(torch.equal, buffers, others_buffers))
    gradients = sum(parameter.nbytes for parameter in parameters)
    assert others_sent == 3 * gradients
    assert sent == 3 * (gradients + (extra if strategy != "ddp" else 0))  # ddp's own are not counted


def overflowing(name: str) -> tuple[list[bool], float]:
    """Whether the weights changed in each of three steps, of which the second overflows on one rank; the loss scale."""
    with joined() as world:
        strategy = prepared({"strategy": name, "precision": "fp16"}, nn.Linear(3, 2), world)
        strategy.scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        changed = []
        for factor in (1.0, 1.0 if world.leads else 1e6, 1.0):
            before = strategy.model.weight.detach().clone()
            step(strategy, factor)
            changed.append(not torch.equal(before, strategy.model.weight))
        return changed, strategy.scaler.get_scale()


@STRATEGY
def test_an_overflow_in_fp16_on_one_rank_is_skipped_by_all(strategy: str) -> None:
    assert ranks.run(overflowing, 2, strategy) == [([True, False, True], 32.0)] * 2


class Partly(nn.Module):
    """Leaves a layer out."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(3, 2)
        self.unused = nn.Linear(3, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.used(inputs)
        return outputs


def unused(name: str, options: dict[str, Any], error: type[Exception] | None, message: str) -> None:
    with joined() as world:
        strategy = prepared({"strategy": {"name": name, **options}}, Partly(), world)
        if error is None:
            step(strategy)
            step(strategy)
            return
        with pytest.raises(error, match=message):  # noqa: PT012 (DDP tells in the second step)
            for _ in range(2):
                step(strategy)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("ring", {}, RecipeError, "unused.weight, unused.bias got no gradient: .* find_unused_parameters: true"),
        ("broadcast", {}, RecipeError, "unused.weight, unused.bias got no gradient"),
        ("ddp", {}, RuntimeError, "find_unused_parameters=True"),
        ("ddp", {"find_unused_parameters": True}, None, ""),
        ("ddp", {"static_graph": True}, None, ""),
    ],
    ids=["ring", "broadcast", "ddp", "found", "static"],
)
def test_parameters_without_a_gradient(
    name: str, options: dict[str, Any], error: type[Exception] | None, message: str
) -> None:
    ranks.run(unused, 2, name, options, error, message)
