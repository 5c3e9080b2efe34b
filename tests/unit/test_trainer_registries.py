"""Every name that a recipe may say is one that the trainer can build, and the other way round."""

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from torch import nn

from torchyard.recipe import Recipe
from trainer.data import DATA
from trainer.models import MODELS
from trainer.optimization.optimizers import OPTIMIZERS
from trainer.optimization.schedules import SCHEDULES
from trainer.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("noun", "registry"),
    [
        ("model", MODELS),
        ("data", DATA),
        ("optim", OPTIMIZERS),
        ("schedule", SCHEDULES),
        ("strategy", STRATEGIES),
    ],
)
def test_schema_and_registry_agree(noun: str, registry: Mapping[str, Any]) -> None:
    kinds = get_args(Recipe.model_fields[noun].annotation)
    assert {kind.model_fields["name"].default for kind in kinds} == set(registry)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_option_of_an_optimizer_is_torchs(name: str) -> None:
    options = Recipe.model_validate({"optim": name}).optim
    optimizer = OPTIMIZERS[name](options, nn.Linear(1, 1).parameters())
    assert optimizer.param_groups[0]["lr"] == options.lr
