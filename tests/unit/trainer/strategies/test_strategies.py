import pytest
import torch
from torch import nn

from torchyard.recipe.strategies import Single
from trainer.distributed import World
from trainer.exceptions import RecipeError
from trainer.strategies.single import SingleStrategy

CPU = torch.device("cpu")


def test_single_is_the_plain_model() -> None:
    strategy = SingleStrategy(Single(), World(rank=0, local_rank=0, size=1, device=CPU))
    model = nn.Linear(2, 1)
    assert strategy.unwrap(strategy.wrap(model)) is model
    assert strategy.loss_scale(4) == 0.25
    assert set(strategy.model_state(model)) == {"weight", "bias"}


def test_single_refuses_company() -> None:
    with pytest.raises(RecipeError, match="take strategy: ddp"):
        SingleStrategy(Single(), World(rank=0, local_rank=0, size=2, device=CPU))
