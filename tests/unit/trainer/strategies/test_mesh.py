import pytest
import torch
from torch import nn

from torchyard.recipe.strategies import Fsdp, TensorParallel
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.fsdp import FsdpStrategy
from trainer.strategies.mesh import spread_over
from trainer.strategies.tensor_parallel import TensorParallelStrategy


def world(rank: int, size: int) -> World:
    return World(rank=rank, local_rank=rank, size=size, devices=(torch.device("cpu"),))


def test_a_tensor_group_is_one_share_and_draws_alike() -> None:
    ranks = [FsdpStrategy(Fsdp(tensor_parallel=2), world(rank, 4)) for rank in range(4)]
    assert [(each.shares.index, each.shares.count) for each in ranks] == [(0, 2), (0, 2), (1, 2), (1, 2)]
    assert [each.counts for each in ranks] == [True, False, True, False]
    assert [each.chance for each in ranks] == [0, 0, 1, 1]
    assert {each.averaged_over for each in ranks} == {2}


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(RecipeError, match="tensor_parallel is 2, but 3 processes do not divide"):
        FsdpStrategy(Fsdp(tensor_parallel=2), world(0, 3))
    with pytest.raises(RecipeError, match="needs at least two ranks: take strategy: single"):
        TensorParallelStrategy(TensorParallel(), world(0, 1))


def test_a_plain_tensor_is_whole_everywhere() -> None:
    assert spread_over(nn.Linear(2, 1).weight) == ()
