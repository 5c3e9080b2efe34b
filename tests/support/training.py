"""Trainings of recipes: by ranks with a strategy, and plainly by one process to compare with."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from tests.support import ranks
from tests.support.attempt import AttemptFolder
from torchyard.injob import control, files, layout
from torchyard.recipe import Recipe
from trainer.data import DATA
from trainer.data.sampler import BatchShares, TrainSampler
from trainer.distributed.collectives import local
from trainer.distributed.process_group import joined
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.models import MODELS
from trainer.optimization.objective import objective_for
from trainer.optimization.optimizers import OPTIMIZERS

#: For sums over ranks, replicas or microbatches, which are taken in another order than over a whole batch.
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}
#: Neither number of samples divides by the ranks of a test, or by its batch.
SYNTHETIC: dict[str, Any] = {"name": "synthetic", "samples": 91, "validation_samples": 37}


def recipe(strategy: Any, **changed: Any) -> dict[str, Any]:
    """Two epochs with nothing even about them."""
    return {
        "model": {"name": "mlp", "hidden": [24, 20, 16]},
        "data": SYNTHETIC,
        "optim": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
        "strategy": strategy,
        "epochs": 2,
        "batch_size": 10,
        "log_every": 1,
        **changed,
    }


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether both have the same names and the very same bits."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What is left of a training by several ranks."""

    #: Each rank's own parameters and buffers at the end, as it holds them.
    own: list[dict[str, Tensor]]
    #: The whole model, as rank 0 gathers it.
    whole: dict[str, Tensor]
    attempt: AttemptFolder

    @property
    def proof(self) -> dict[str, Any]:
        """The record that the run left of its strategy."""
        content: dict[str, Any] = files.read_json(str(self.attempt.root / layout.OUTPUT / "strategy.json"))
        return content

    def losses(self) -> list[float]:
        reported = self.attempt.series("train/loss")
        return [reported[step] for step in sorted(reported)]


def train(
    recipe: dict[str, Any],
    world: int,
    folder: Path,
    *,
    restore: Path | None = None,
    checkpoint_every: float | None = None,
    environment: dict[str, str] | None = None,
) -> Trained:
    """Trains a recipe with `world` real ranks in an attempt folder of its own."""
    attempt = AttemptFolder(folder)
    given = attempt.environment(restore=restore, checkpoint_every=checkpoint_every) | (environment or {})
    results = ranks.run(_rank, world, recipe, environment=given)
    return Trained(own=[own for own, _ in results], whole=results[0][1], attempt=attempt)


def _rank(given: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    control.POLL_SECONDS = 0  # every step asks, so that a checkpoint is due after each
    recipe = Recipe.model_validate(given)
    with joined(recipe.strategy) as world:
        components = build(recipe, world)
        Training(components).run()
        own: dict[str, Tensor] = {}
        for module in components.strategy.modules():
            own |= {name: local(value).detach().cpu().clone() for name, value in module.state_dict().items()}
        return own, components.strategy.whole_state()


def exchanged(given: dict[str, Any], world: int) -> list[dict[str, int]]:
    """What each rank really hands to its process group in one step of training: elements, by operation.

    As torch's profiler sees it, and so also what DistributedDataParallel does in C++; not as a strategy counts.
    """
    return ranks.run(_one_step, world, given)


def _one_step(given: dict[str, Any]) -> dict[str, int]:
    recipe = Recipe.model_validate(given)
    with joined(recipe.strategy) as world:
        run = Training(build(recipe, world))
        strategy = run.components.strategy
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
            for batch in run.batches(0):
                strategy.backward(batch)
                if batch.last:
                    strategy.update(0.1, measure=False)
                    break
        found: Counter[str] = Counter()
        for event in profiled.events():
            if event.name.startswith("gloo:") and event.input_shapes:
                found[event.name.removeprefix("gloo:")] += sum(map(math.prod, event.input_shapes))
        found["counted"] = strategy.bytes_sent
        return dict(found)


def alone(given: dict[str, Any], effective_batch: int) -> tuple[dict[str, Tensor], list[float]]:
    """The same training written plainly: one process, the whole effective batch at once.

    Answers the weights at the end and the loss of each step. Without dropout, a strategy must come to the same.
    """
    weights, losses, _ = plainly(given, effective_batch)
    return weights, losses


def plainly(given: dict[str, Any], effective_batch: int) -> tuple[dict[str, Tensor], list[float], list[float]]:
    """`alone`, and the accuracy of each step on what it trained on."""
    recipe = Recipe.model_validate(given)
    data = DATA[recipe.data.name](recipe.data)
    objective = objective_for(data.shape)
    torch.manual_seed(recipe.seed)
    model = MODELS[recipe.model.name](recipe.model, data.shape)
    optimizer = OPTIMIZERS[recipe.optim.name](recipe.optim, model.parameters())
    losses, accuracies = [], []
    for epoch in range(recipe.epochs):
        for indices in _batches(recipe, len(data.train), effective_batch, epoch):  # type: ignore[arg-type]
            samples, targets = data.train.__getitems__(indices)  # type: ignore[attr-defined]
            outputs = model(samples)
            loss = objective.loss(outputs, targets) / len(indices)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if isinstance(outputs, Tensor):  # a segmenter answers a mapping, and no sample of it is right or wrong
                accuracies.append(float((outputs.argmax(dim=1) == targets).float().mean()))
    return {name: value.detach() for name, value in model.state_dict().items()}, losses, accuracies


def _batches(recipe: Recipe, samples: int, size: int, epoch: int) -> list[list[int]]:
    sampler = TrainSampler(samples=samples, size=size, shares=BatchShares(), seed=recipe.seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def scores(given: dict[str, Any], weights: dict[str, Tensor]) -> dict[str, float]:
    """A model's exact scores over the whole validation set, without ranks or batches."""
    recipe = Recipe.model_validate(given)
    data = DATA[recipe.data.name](recipe.data)
    objective = objective_for(data.shape)
    model = MODELS[recipe.model.name](recipe.model, data.shape)
    model.load_state_dict(weights)
    model.eval()
    samples = len(data.validation)  # type: ignore[arg-type]
    inputs, targets = data.validation.__getitems__(list(range(samples)))  # type: ignore[attr-defined]
    with torch.no_grad():
        return objective.conclude(objective.measure(model(inputs), targets).tolist(), samples)
