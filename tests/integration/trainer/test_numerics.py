"""Each run key about computing does what it says, under every strategy that it is for."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import ranks, training
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout
from torchyard.recipe import Recipe
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.numerics import compute

#: Three steps and an uneven end; seven validation samples.
RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [12, 10, 8], "dropout": 0.3},
    "data": {"name": "synthetic", "samples": 23, "validation_samples": 7, "classes": 4},
    "optim": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
    "epochs": 1,
    "batch_size": 4,
    "log_every": 1,
}
IMAGES: dict[str, Any] = {
    **RECIPE,
    "model": {"name": "digits_cnn", "channels": 4, "dropout": 0.3},
    "data": {**RECIPE["data"], "shape": [3, 6, 6]},
}
#: Processes by strategy.
STRATEGIES: dict[str, tuple[int, Any]] = {
    "single": (1, "single"),
    "dp": (1, {"name": "dp", "devices": 2}),
    "model_parallel": (1, {"name": "model_parallel", "devices": 2}),
    "ddp": (2, "ddp"),
    "ring": (2, "ring"),
    "parameter_server": (3, "parameter_server"),
    "pipeline": (2, {"name": "pipeline", "microbatches": 2}),
    "fsdp": (2, "fsdp"),
    "tensor_parallel": (2, "tensor_parallel"),
}

Weights = dict[str, Tensor]


def each(recipes: list[dict[str, Any]]) -> list[Weights]:
    """In a rank: the whole model that each recipe comes to, one after the other."""
    given = [Recipe.model_validate(recipe) for recipe in recipes]
    with joined(given[0].strategy) as world:
        return [_trained(recipe, world) for recipe in given]


def _trained(recipe: Recipe, world: World) -> Weights:
    components = build(recipe, world)
    Training(components).run()
    return {name: value.clone() for name, value in components.strategy.whole_state().items()}


@pytest.mark.parametrize("name", STRATEGIES)
def test_two_runs_are_alike_and_so_are_recomputed_activations(name: str, tmp_path: Path) -> None:
    world, strategy = STRATEGIES[name]
    plain = {**RECIPE, "strategy": strategy, "accumulate": 2}
    others: list[dict[str, Any]] = [{"deterministic": True}, {"activation_checkpointing": True}, {"seed": 1}]
    first, again, recomputed, different = ranks.run(each, world, [{**plain, **other} for other in [{}, *others]])[0]
    assert training.equal(first, again)
    assert training.equal(first, recomputed)
    assert not training.equal(first, different)


@pytest.mark.parametrize("name", ["dp", "ddp", "pipeline", "fsdp", "tensor_parallel"])
def test_half_precision_stays_close(name: str, tmp_path: Path) -> None:
    """Eight bits of mantissa: after four steps weights differ by less than a hundredth."""
    world, strategy = STRATEGIES[name]
    plain = {**IMAGES, "model": {**IMAGES["model"], "dropout": 0}, "strategy": strategy, "clip_norm": 1.0}
    precise, half, nhwc = ranks.run(
        each, world, [plain, {**plain, "precision": "bf16"}, {**plain, "channels_last": True}]
    )[0]
    assert all(value.dtype is torch.float32 for value in half.values())
    assert not training.equal(precise, half)
    torch.testing.assert_close(half, precise, rtol=0, atol=1e-2)
    # Another order of channels in memory: other kernels, other rounding.
    torch.testing.assert_close(nhwc, precise, rtol=1e-4, atol=1e-6)


def seen(recipe: dict[str, Any]) -> dict[str, Any]:
    """In a rank: what layers compute in training, and how this process is switched."""
    given = Recipe.model_validate(recipe)
    found: dict[str, Any] = {"types": set(), "layouts": set(), "kernels": set()}

    def look(layer: nn.Module, _: Any, output: Tensor) -> None:
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.training:
            found["types"].add(output.dtype)
        if isinstance(layer, nn.Conv2d):
            found["layouts"].add(output.is_contiguous(memory_format=torch.channels_last))
            found["kernels"].add(layer.weight.is_contiguous(memory_format=torch.channels_last))

    with joined(given.strategy) as world:
        components = build(given, world)
        for module in components.strategy.modules():
            for layer in module.modules():
                layer.register_forward_hook(look)
        Training(components).run()
        found["recomputed"] = any(
            "Recomputed" in type(each).__name__ for module in components.strategy.called() for each in module.modules()
        )
    return found | {
        "deterministic": torch.are_deterministic_algorithms_enabled() and torch.backends.cudnn.deterministic,
        "benchmark": torch.backends.cudnn.benchmark,
        "tf32": (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32),
        "cublas": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    }


@pytest.mark.parametrize("name", STRATEGIES)
def test_layers_compute_in_the_type_of_the_recipe(name: str) -> None:
    world, strategy = STRATEGIES[name]
    keys = {"precision": "bf16", "channels_last": True, "activation_checkpointing": True}
    first, *others = ranks.run(seen, world, {**IMAGES, "strategy": strategy, **keys})
    assert first["types"] == {torch.bfloat16}
    assert first["layouts"] == {True}
    assert first["kernels"] == {True} or name not in {"single", "ddp", "ring"}  # others cut or copy the weights
    assert first["recomputed"]
    assert all(other["types"] <= first["types"] for other in others)  # a server computes nothing


def test_switches() -> None:
    plain = ranks.run(seen, 1, {**IMAGES, "strategy": "single"})[0]
    assert plain == {
        "types": {torch.float32},
        "layouts": {False},
        "kernels": {False},
        "recomputed": False,
        "deterministic": False,
        "benchmark": False,
        "tf32": ("highest", False),
        "cublas": None,
    }
    fast = ranks.run(seen, 1, {**IMAGES, "strategy": "single", "tf32": True, "cudnn_benchmark": True})[0]
    assert (fast["benchmark"], fast["tf32"]) == (True, ("high", True))
    exact = ranks.run(seen, 1, {**IMAGES, "strategy": "single", "deterministic": True})[0]
    assert (exact["deterministic"], exact["cublas"]) == (True, ":4096:8")


def overflowing(recipe: dict[str, Any]) -> tuple[list[float], list[bool], list[int]]:
    """In a rank: the loss scale after each step, whether it changed the weights, and which ones the averages followed.

    The second step overflows.
    """
    given = Recipe.model_validate(recipe)
    scales, changed, followed = [], [], []
    with joined(given.strategy) as world:
        strategy = (components := build(given, world)).strategy
        training_run = Training(components)
        update = strategy.update

        def watched(rate: float, *, measure: bool) -> Tensor | None:
            weight = strategy.parameters()[0]
            before = weight.detach().clone()
            if training_run.step == 1 and weight.grad is not None:
                weight.grad[0, 0] = float("inf")
            norm = update(rate, measure=measure)
            scales.append(strategy.scaler.get_scale())
            changed.append(not torch.equal(weight, before))
            return norm

        def averaged() -> None:
            followed.append(len(changed))
            follow()

        strategy.update = watched  # type: ignore[method-assign]
        assert components.average is not None
        follow, components.average.update = components.average.update, averaged  # type: ignore[method-assign]
        training_run.run()
    return scales, changed, followed


@pytest.mark.parametrize("name", ["dp", "ddp", "model_parallel"])
def test_a_step_that_overflows_is_left_out(name: str) -> None:
    world, strategy = STRATEGIES[name]
    recipe = {**RECIPE, "strategy": strategy, "precision": "fp16", "clip_norm": 1.0, "ema_decay": 0.9}
    scales, changed, followed = ranks.run(overflowing, world, recipe)[-1]
    assert changed[:3] == [True, False, True]
    assert followed[:2] == [1, 3]  # the averages follow steps that were taken
    assert scales[:3] == [65536.0, 32768.0, 32768.0]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_resumed_in_half_precision(precision: str, tmp_path: Path) -> None:
    given = {**RECIPE, "precision": precision, "optim": "adam", "ema_decay": 0.9}
    whole = training.train(given, 2, tmp_path / "whole", checkpoint_every=1e-9)
    resumed = training.train(given, 2, tmp_path / "resumed", restore=whole.attempt.checkpoints()[1])
    assert training.equal(whole.whole, resumed.whole)
    averages = [
        torch.load(each.attempt.root / layout.OUTPUT / "ema.pt", weights_only=True) for each in (whole, resumed)
    ]
    assert training.equal(*averages)
    assert not training.equal(averages[0], whole.whole)
    states = [
        torch.load(each.attempt.checkpoints()[-1] / "training.pt", weights_only=True)["stateful"]["scaler"]
        for each in (whole, resumed)
    ]
    assert states[0] == states[1]
    assert bool(states[0]) == (precision == "fp16")


def compiled(recipes: list[dict[str, Any]]) -> tuple[list[Weights], int]:
    """In a rank: as `each`, with a compiler that changes no numbers; and how many graphs it was given."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compute.BACKEND = backend
    return each(recipes), len(graphs)


@pytest.mark.parametrize("name", ["ddp", "pipeline", "fsdp", "tensor_parallel"])
def test_compiled_models_train_alike(name: str) -> None:
    world, strategy = STRATEGIES[name]
    plain = {**RECIPE, "strategy": strategy}
    for (first, second), graphs in ranks.run(compiled, world, [plain, {**plain, "compile": True}]):
        assert training.equal(first, second)
        assert graphs > 0


def test_a_compiled_model_resumes_exactly(tmp_path: Path) -> None:
    recipe = {**RECIPE, "strategy": "fsdp", "compile": True}
    folder, second = AttemptFolder(tmp_path / "whole"), AttemptFolder(tmp_path / "resumed")
    [(whole,), _] = ranks.run(compiled, 2, [recipe], environment=folder.environment(checkpoint_every=1e-9))[0]
    restored = second.environment(restore=folder.checkpoints()[0])
    [(resumed,), _] = ranks.run(compiled, 2, [recipe], environment=restored)[0]
    assert training.equal(whole, resumed)
