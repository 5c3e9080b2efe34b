"""Data sets as the trainer sees them."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import Dataset

from trainer.exceptions import RecipeError

#: Pixels of this class count neither in losses nor in scores (PASCAL VOC's borders).
IGNORED = 255
#: Samples (N, …) and their targets (N, or N, height, width).
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Shape of the samples and number of classes that a model must fit."""

    #: Shape of one sample, without the batch.
    sample: tuple[int, ...]
    classes: int
    #: One class for each sample, or one for each of its pixels.
    kind: Literal["classification", "segmentation"] = "classification"


@dataclass(frozen=True, kw_only=True)
class DataSets:
    """Training and validation samples, each with a length. Raises RecipeError when there are none of the latter."""

    train: Dataset[Any]
    validation: Dataset[Any]
    shape: Shape

    def __post_init__(self) -> None:
        for name, data in (("train", self.train), ("validation", self.validation)):
            if not hasattr(data, "__len__"):
                raise RecipeError(
                    f"the {name} samples are a {type(data).__name__}, which has no length: give a Dataset with __len__ "
                    "and __getitem__"
                )
        if not len(self.validation):  # type: ignore[arg-type] # the sets are to have a length
            raise RecipeError("the data have no validation samples: hold some back, one is enough")

    def begin(self, seed: int, epoch: int) -> None:
        """Fix what chance does to the training samples in an epoch: call it before the loader is made.

        The set itself may draw (`AugmentedDataset` does): it then has a `begin` as well.
        """
        if hasattr(self.train, "begin"):
            self.train.begin(seed, epoch)


class TensorData(Dataset[Batch]):
    """Samples held in memory; a whole batch is one indexing."""

    def __init__(self, samples: Tensor, targets: Tensor) -> None:
        self.samples = samples
        self.targets = targets

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> Batch:
        return self.samples[index], self.targets[index]

    def __getitems__(self, indices: list[int]) -> Batch:
        chosen = torch.tensor(indices)
        return self.samples[chosen], self.targets[chosen]
