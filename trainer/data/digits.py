"""scikit-learn's handwritten digits."""

import torch

from torchyard.recipe.data import Digits
from trainer.data.sets import DataSets, Shape, TensorData
from trainer.exceptions import RecipeError


def digits(options: Digits) -> DataSets:
    """1,797 images (1, 8, 8) with values from 0 to 1, split by `options.split_seed`."""
    from sklearn.datasets import load_digits  # over a second: only for those who use it

    source = load_digits()
    images = torch.tensor(source.images, dtype=torch.float32).unsqueeze(1) / 16
    targets = torch.tensor(source.target)
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(options.split_seed))
    held_out = round(options.validation * len(targets))
    if not 0 < held_out < len(targets):
        raise RecipeError(f"data.validation {options.validation} leaves one side of the split empty: try 0.2")
    train, validation = order[held_out:], order[:held_out]
    return DataSets(
        train=TensorData(images[train], targets[train]),
        validation=TensorData(images[validation], targets[validation]),
        shape=Shape(sample=(1, 8, 8), classes=10),
    )
