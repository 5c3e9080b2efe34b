"""Optimizers by name."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from torchyard.recipe.optim import Adam, AdamW, Sgd

#: Parameters, or groups of them.
Parameters = Iterable[nn.Parameter] | Iterable[dict[str, Any]]


def adam(options: Adam, parameters: Parameters) -> Optimizer:
    return torch.optim.Adam(parameters, **options.model_dump(exclude={"name"}))


def adamw(options: AdamW, parameters: Parameters) -> Optimizer:
    return torch.optim.AdamW(parameters, **options.model_dump(exclude={"name"}))


def sgd(options: Sgd, parameters: Parameters) -> Optimizer:
    return torch.optim.SGD(parameters, **options.model_dump(exclude={"name"}))


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": adam,
    "adamw": adamw,
    "sgd": sgd,
}
