"""Evaluation on the whole validation set, by all ranks together."""

from collections.abc import Callable

import torch
from torch import nn

from torchyard.recipe import Recipe
from trainer.data import DataSets
from trainer.data.loading import batches
from trainer.data.sampler import EvaluationSampler
from trainer.distributed import World, summed
from trainer.objective import Objective


def evaluate(
    model: nn.Module,
    data: DataSets,
    objective: Objective,
    recipe: Recipe,
    world: World,
    poll: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Each score's exact mean over the validation set, the same on every rank.

    `model` is the one without communication in its forward. `poll` is called before each batch that all ranks have.
    """
    size = len(data.validation)  # type: ignore[arg-type]
    sampler = EvaluationSampler(samples=size, batch_size=recipe.batch_size, rank=world.rank, world=world.size)
    sums = torch.zeros(len(objective.scores), dtype=torch.float64, device=world.device)
    model.eval()
    try:
        with torch.no_grad():
            for index, (samples, targets) in enumerate(batches(data.validation, sampler, recipe, world)):
                if index < sampler.common:
                    poll()
                outputs = model(samples)
                sums += torch.stack([score(outputs, targets).double() for score in objective.scores.values()])
    finally:
        model.train()
    means = summed(sums) / size
    return dict(zip(objective.scores, means.tolist(), strict=True))
