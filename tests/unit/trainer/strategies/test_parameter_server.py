"""Which rank is what, and what is refused."""

import pytest
import torch
from torch import nn

from torchyard.recipe.strategies import ParameterServer
from trainer.data.sampler import BatchShares
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies import STRATEGIES, Strategy
from trainer.strategies.parameter_server.server import ServerStrategy
from trainer.strategies.parameter_server.sharding import Shard
from trainer.strategies.parameter_server.worker import ServerConnection, WorkerStrategy

CPU = torch.device("cpu")


def side(rank: int, size: int, servers: int) -> Strategy:
    world = World(rank=rank, local_rank=rank, size=size, devices=(CPU,))
    return STRATEGIES["parameter_server"](ParameterServer(servers=servers), world)


def test_the_last_ranks_are_servers_and_load_nothing() -> None:
    sides = [side(rank, 5, 2) for rank in range(5)]
    assert [type(each) for each in sides] == [
        WorkerStrategy,
        WorkerStrategy,
        WorkerStrategy,
        ServerStrategy,
        ServerStrategy,
    ]
    assert [each.loads for each in sides] == [each.counts for each in sides] == [True, True, True, False, False]
    assert [each.shares for each in sides[:3]] == [BatchShares(index=index, count=3) for index in range(3)]
    assert {each.shares.count for each in sides} == {each.device_count for each in sides} == {3}


def test_servers_alone_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"has 2 server\(s\) and no worker among 2 process\(es\): start 3 or more"):
        side(0, 2, 2)


def test_a_parameter_without_a_gradient_is_refused() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.grad = torch.zeros(2, 3)
    route = ServerConnection(1, Shard(parameters=dict(layer.named_parameters()), buffers={}), CPU)
    with pytest.raises(RecipeError, match="bias got no gradient: let forward use it, or set its requires_grad"):
        route.push()
