import pytest
import torch

from torchyard.recipe.strategies import Single
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.single import SingleStrategy


def test_single_refuses_company() -> None:
    with pytest.raises(RecipeError, match="take strategy: ddp"):
        SingleStrategy(Single(), World(rank=0, local_rank=0, size=2, devices=(torch.device("cpu"),)))
