"""Data made on the spot, for benchmarks and tests."""

import torch
from torch import Tensor

from torchyard.recipe.data import Synthetic
from trainer.data.sets import DataSets, Shape, TensorData


def synthetic(options: Synthetic) -> DataSets:
    """Samples around one prototype for each class; the same on every rank and in every run."""
    chance = torch.Generator().manual_seed(0)
    prototypes = torch.randn(options.classes, *options.shape, generator=chance)

    def draw(count: int) -> TensorData:
        targets = torch.randint(options.classes, (count,), generator=chance)
        noise: Tensor = options.noise * torch.randn(count, *options.shape, generator=chance)
        return TensorData(prototypes[targets] + noise, targets)

    return DataSets(
        train=draw(options.samples),
        validation=draw(options.validation_samples),
        shape=Shape(sample=options.shape, classes=options.classes),
    )
