"""Models by name. To add one: a file here, its options in `torchyard.recipe`, a line below."""

from collections.abc import Callable
from typing import Any

from torch import nn

from trainer.data import Shape
from trainer.models.digits_cnn import digits_cnn
from trainer.models.mlp import mlp

MODELS: dict[str, Callable[[Any, Shape], nn.Module]] = {
    "digits_cnn": digits_cnn,
    "mlp": mlp,
}
