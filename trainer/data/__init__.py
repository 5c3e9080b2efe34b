"""Data sets by name. To add one: a function here, its options in `torchyard.recipe.data`, a line below."""

from collections.abc import Callable
from typing import Any

from trainer.data.custom import custom_data
from trainer.data.digits import digits
from trainer.data.images import cifar10, cifar100, image_folder, mnist, stl10, voc
from trainer.data.sets import Batch, DataSets, Shape, TensorData
from trainer.data.synthetic import synthetic, synthetic_segmentation

__all__ = ["DATA", "Batch", "DataSets", "Shape", "TensorData"]

DATA: dict[str, Callable[[Any], DataSets]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "custom": custom_data,
    "digits": digits,
    "image_folder": image_folder,
    "mnist": mnist,
    "stl10": stl10,
    "synthetic": synthetic,
    "synthetic_segmentation": synthetic_segmentation,
    "voc": voc,
}
