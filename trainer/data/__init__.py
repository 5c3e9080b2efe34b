"""Data sets by name. To add one: a file here, its options in `torchyard.recipe`, a line below."""

from collections.abc import Callable
from typing import Any

from trainer.data.digits import digits
from trainer.data.sets import Batch, DataSets, Shape, TensorData
from trainer.data.synthetic import synthetic

__all__ = ["DATA", "Batch", "DataSets", "Shape", "TensorData"]

DATA: dict[str, Callable[[Any], DataSets]] = {
    "digits": digits,
    "synthetic": synthetic,
}
