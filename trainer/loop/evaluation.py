"""Evaluation on the whole validation set, by all ranks together."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import Dataset

from torchyard.recipe import Recipe
from trainer.data.loading import Pair, load, padded
from trainer.data.sampler import EvaluationSampler
from trainer.distributed.collectives import sum_over_ranks
from trainer.strategies.base import Strategy


def evaluate(
    strategy: Strategy,
    dataset: Dataset[Any],
    recipe: Recipe,
    poll: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Return each score's exact value over the whole set, the same on every rank.

    `poll` is called before each batch that all shares have.
    """
    sent = strategy.bytes_sent
    strategy.align()
    modules = strategy.modules()
    modes = [(each, each.training) for module in modules for each in module.modules()]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad():
            return _evaluated(strategy, dataset, recipe, poll)
    finally:
        # As `eval`, it may do more than set modes, such as part weights that were merged.
        for module in modules:
            module.train()
        # A job's own model may hold layers that do not train, such as batch normalisation with fixed statistics.
        for each, mode in modes:
            each.training = mode
        strategy.end_evaluation()
        # What is told of a step is that of training alone.
        strategy.bytes_sent = sent


def _evaluated(strategy: Strategy, dataset: Dataset[Any], recipe: Recipe, poll: Callable[[], None]) -> dict[str, float]:
    objective, size = strategy.task.objective, strategy.task.share_size
    samples = len(dataset)  # type: ignore[arg-type]
    equal = strategy.equal_batches or strategy.equal_passes
    sampler = EvaluationSampler(samples=samples, batch_size=size, shares=strategy.shares, equal=equal)
    sums: list[float] = []
    for index, (pair, count) in enumerate(_passes(strategy, dataset, sampler, recipe)):
        if index < sampler.common:
            poll()
        outputs = strategy.predict(None if pair is None else pair[0])
        if outputs is not None and strategy.counts and count:
            assert pair is not None
            measured = objective.measure(objective.trim(outputs, count), pair[1][:count]).tolist()
            sums = [a + b for a, b in zip(sums or [0.0] * len(measured), measured, strict=True)]
    return objective.conclude(sum_over_ranks(sums), samples)


def _passes(
    strategy: Strategy, dataset: Dataset[Any], sampler: EvaluationSampler, recipe: Recipe
) -> Iterator[tuple[Pair | None, int]]:
    """Yield the batches of this process with the samples of each that count; no data for one that loads nothing."""
    if not strategy.loads:
        for count in sampler.counts():
            yield None, count
        return
    stream = ("evaluation", strategy.shares.index)
    pairs = load(dataset, sampler, recipe, strategy.world.device, stream)
    for pair, count in zip(pairs, sampler.counts(), strict=True):
        yield (padded(pair, strategy.task.share_size) if strategy.equal_batches else pair), count
