"""Optimizers by name."""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim import Optimizer

from torchyard.recipe.optim import Adam, AdamW, Sgd

Parameters = Iterable[nn.Parameter]


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
