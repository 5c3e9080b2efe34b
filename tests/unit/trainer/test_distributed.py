import pytest
import torch

from trainer.distributed import describe, threads_per_rank
from trainer.exceptions import RecipeError


def test_the_device_follows_local_rank() -> None:
    world = describe({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, gpus=2)
    assert (world.rank, world.size, world.device, world.leads) == (3, 4, torch.device("cuda", 1), False)


def test_without_a_launcher_it_is_alone_on_the_cpu() -> None:
    world = describe({}, gpus=0)
    assert (world.rank, world.size, world.device, world.leads) == (0, 1, torch.device("cpu"), True)


def test_more_ranks_than_gpus_are_refused() -> None:
    with pytest.raises(RecipeError, match="start at most that many ranks"):
        describe({"LOCAL_RANK": "2"}, gpus=2)


def test_threads_are_shared_unless_given() -> None:
    assert threads_per_rank({"LOCAL_WORLD_SIZE": "2"}, cores=5) == 2
    assert threads_per_rank({"LOCAL_WORLD_SIZE": "8"}, cores=2) == 1
    assert threads_per_rank({"OMP_NUM_THREADS": "3"}, cores=8) is None
