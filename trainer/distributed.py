"""Joining the other ranks: ``env://`` under torchrun, a group of one without it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from trainer.exceptions import RecipeError


@dataclass(frozen=True, kw_only=True)
class World:
    """Place of this process among the others."""

    rank: int
    local_rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this rank writes what is written once."""
        return self.rank == 0


def describe(environment: dict[str, str], gpus: int) -> World:
    """The place that the launcher gave this process; the device follows LOCAL_RANK, never RANK.

    Raises RecipeError if there are GPUs, but fewer than ranks on this node.
    """
    local_rank = int(environment.get("LOCAL_RANK", "0"))
    if gpus and local_rank >= gpus:
        raise RecipeError(f"local rank {local_rank} has no GPU: {gpus} are visible, start at most that many ranks")
    return World(
        rank=int(environment.get("RANK", "0")),
        local_rank=local_rank,
        size=int(environment.get("WORLD_SIZE", "1")),
        device=torch.device("cuda", local_rank) if gpus else torch.device("cpu"),
    )


def threads_per_rank(environment: dict[str, str], cores: int) -> int | None:
    """An even share of the cores; None if the environment decides."""
    if "OMP_NUM_THREADS" in environment:
        return None
    return max(1, cores // int(environment.get("LOCAL_WORLD_SIZE", "1")))


@contextmanager
def joined() -> Iterator[World]:
    """The process group for the time of the block: NCCL for GPU tensors, gloo for those on the CPU."""
    environment = dict(os.environ)
    world = describe(environment, torch.cuda.device_count())
    if (threads := threads_per_rank(environment, len(os.sched_getaffinity(0)))) is not None:
        torch.set_num_threads(threads)
    _initialise(world)
    try:
        yield world
    except SystemExit as leave:
        # A clean stop: all ranks leave at the same step.
        if not leave.code:
            _destroy()
        raise
    else:
        _destroy()


def _initialise(world: World) -> None:
    options: dict[str, Any] = {"backend": "gloo"}
    if world.device.type == "cuda":
        torch.cuda.set_device(world.device)
        options = {"backend": "cpu:gloo,cuda:nccl", "device_id": world.device}
    if "MASTER_ADDR" not in os.environ:
        if world.size > 1:
            raise RecipeError("WORLD_SIZE is set but MASTER_ADDR is not: start the ranks with torchrun")
        store = dist.HashStore()  # type: ignore[attr-defined]
        options |= {"store": store, "rank": 0, "world_size": 1}
    dist.init_process_group(**options)


def _destroy() -> None:
    # A rank that leaves early takes the connections of the others with it.
    dist.barrier()
    dist.destroy_process_group()


def summed(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of every rank's tensor; the argument is left alone."""
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def gathered(value: Any, world: World) -> list[Any]:
    """Every rank's value, by rank; empty on all ranks but 0."""
    values: list[Any] = [None] * world.size
    dist.gather_object(value, values if world.leads else None)
    return values if world.leads else []
