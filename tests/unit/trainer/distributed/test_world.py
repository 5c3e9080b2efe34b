import pytest
import torch

from torchyard.recipe.strategies import Ddp, Dp, ModelParallel, ParameterServer
from trainer.distributed.collectives import all_reduce_bytes, local
from trainer.distributed.world import describe, threads_per_rank
from trainer.exceptions import RecipeError


def test_the_device_follows_local_rank() -> None:
    world = describe({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, gpus=2)
    assert (world.rank, world.size, world.device, world.leads) == (3, 4, torch.device("cuda", 1), False)


def test_two_machines_with_two_processes_each_are_a_world_of_four() -> None:
    """RANK and WORLD_SIZE count processes, not machines."""
    launched = [
        {"RANK": str(2 * node + local), "LOCAL_RANK": str(local), "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
        for node in range(2)
        for local in range(2)
    ]
    worlds = [describe(environment, gpus=2) for environment in launched]
    assert [(world.rank, world.size, world.device.index) for world in worlds] == [
        (0, 4, 0),
        (1, 4, 1),
        (2, 4, 0),
        (3, 4, 1),
    ]


def test_without_a_launcher_it_is_alone_on_the_cpu() -> None:
    world = describe({}, gpus=0)
    assert (world.rank, world.size, world.device, world.leads) == (0, 1, torch.device("cpu"), True)


def test_more_ranks_than_gpus_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"needs 1 GPU\(s\) .* start at most 2 rank\(s\)"):
        describe({"LOCAL_RANK": "2"}, gpus=2)


def test_threads_are_shared_unless_given() -> None:
    assert threads_per_rank({"LOCAL_WORLD_SIZE": "2"}, cores=5) == 2
    assert threads_per_rank({"LOCAL_WORLD_SIZE": "8"}, cores=2) == 1
    assert threads_per_rank({"OMP_NUM_THREADS": "3"}, cores=8) is None


def test_a_process_may_have_several_devices() -> None:
    second = describe({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, gpus=4, strategy=ModelParallel(data_parallel=2))
    assert second.devices == (torch.device("cuda", 2), torch.device("cuda", 3))
    assert len(describe({"TORCHYARD_DEVICES": "3"}, gpus=0, strategy=Dp()).devices) == 3
    assert len(describe({}, gpus=0, strategy=Dp(devices=4)).devices) == 4


def test_a_process_of_ddp_has_one_device_however_many_there_are() -> None:
    """Commonly taught wrong: several GPUs in a process of DistributedDataParallel."""
    launched = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"} for rank in range(2)]
    held = [describe(environment, gpus=4, strategy=Ddp()).devices for environment in launched]
    assert held == [(torch.device("cuda", 0),), (torch.device("cuda", 1),)]


def test_servers_have_no_gpu() -> None:
    environment = {"LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "3"}
    assert describe(environment, gpus=2, strategy=ParameterServer()).device == torch.device("cpu")
    assert describe({**environment, "LOCAL_RANK": "1"}, gpus=2, strategy=ParameterServer()).device.index == 1


def test_a_ring_sends_all_of_it_but_a_ranks_own_part_twice() -> None:
    assert [all_reduce_bytes(100, ranks) for ranks in (1, 2, 4)] == [0, 100, 150]


def test_a_plain_tensor_is_its_own_piece() -> None:
    whole = torch.ones(2)
    assert local(whole) is whole
