"""Data made on the spot, for benchmarks and tests."""

import torch
from torch import Tensor

from torchyard.recipe.data import Synthetic, SyntheticSegmentation
from trainer.data.sets import IGNORED, DataSets, Shape, TensorData


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


def synthetic_segmentation(options: SyntheticSegmentation) -> DataSets:
    """Images (3, size, size) with masks (size, size), the same on every rank and in every run.

    A rectangle and a disc, each of one class with its own colour; the line between a shape and the rest is `IGNORED`.
    """
    chance = torch.Generator().manual_seed(0)
    colours = torch.randn(options.classes, 3, generator=chance)

    def draw(count: int) -> TensorData:
        masks = torch.stack([_mask(options, chance) for _ in range(count)])
        images = colours[masks.where(masks != IGNORED, 0)].permute(0, 3, 1, 2)
        noise = options.noise * torch.randn(images.shape, generator=chance)
        return TensorData((images + noise).contiguous(), masks)

    return DataSets(
        train=draw(options.samples),
        validation=draw(options.validation_samples),
        shape=Shape(sample=options.sample_shape, classes=options.classes, kind="segmentation"),
    )


def _mask(options: SyntheticSegmentation, chance: torch.Generator) -> Tensor:
    mask = torch.zeros(options.size, options.size, dtype=torch.long)
    for distance in (_from_rectangle, _from_disc):
        middle = torch.rand(2, generator=chance) * options.size
        radius = (0.15 + 0.2 * torch.rand(1, generator=chance)) * options.size
        kind = torch.randint(1, options.classes, (1,), generator=chance)
        away = distance(options.size, middle) - radius
        mask = torch.where(away < -0.5, kind, torch.where(away < 0.5, IGNORED, mask))
    return mask


def _offsets(size: int, middle: Tensor) -> Tensor:
    """Each pixel's distance from the middle, by rows and by columns: (2, size, size)."""
    places = torch.arange(size)
    return torch.stack(torch.meshgrid(places, places, indexing="ij")) - middle.view(2, 1, 1)


def _from_rectangle(size: int, middle: Tensor) -> Tensor:
    return _offsets(size, middle).abs().amax(dim=0)


def _from_disc(size: int, middle: Tensor) -> Tensor:
    return _offsets(size, middle).square().sum(dim=0).sqrt()
