"""From samplers to batches on the device."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from torchyard.recipe import Recipe
from trainer.data.sets import Batch
from trainer.distributed import World
from trainer.randomness import derive


def batches(
    dataset: Dataset[Any], sampler: Sampler[list[int]], recipe: Recipe, world: World, epoch: int = 0
) -> Iterator[Batch]:
    """The sampler's batches, on the device.

    Chance in loader processes does not touch the rank's own random stream and starts anew with each epoch, so that a
    run resumed at an epoch sees the same.
    """
    loader: DataLoader[Batch] = DataLoader(
        dataset,
        batch_sampler=sampler,
        num_workers=recipe.num_workers,
        collate_fn=_collation(dataset),
        pin_memory=world.device.type == "cuda",
        generator=torch.Generator().manual_seed(derive(recipe.seed, "loader", epoch, world.rank)),
    )
    for samples, targets in loader:
        yield samples.to(world.device, non_blocking=True), targets.to(world.device, non_blocking=True)


def _collation(dataset: Dataset[Any]) -> Callable[[Any], Batch]:
    return _as_it_is if hasattr(dataset, "__getitems__") else default_collate


def _as_it_is(batch: Batch) -> Batch:
    return batch
