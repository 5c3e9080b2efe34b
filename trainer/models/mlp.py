"""A multilayer perceptron."""

import math
from itertools import pairwise

from torch import nn

from torchyard.recipe.models import Mlp
from trainer.data import Shape


def mlp(options: Mlp, shape: Shape) -> nn.Module:
    """Linear layers with ReLU between them; takes (N, …) and flattens it."""
    widths = [math.prod(shape.sample), *options.hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(options.dropout)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], shape.classes))
