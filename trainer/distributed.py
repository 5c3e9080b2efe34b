"""Joining the other ranks: ``env://`` under torchrun, a group of one without it."""

import gc
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo  # optimizers and DDP load it late; loaded after the process group it keeps gloo's threads alive
import torch.distributed as dist

from torchyard import network
from torchyard.injob import gloo, layout, share
from torchyard.recipe.strategies import Ddp, Strategy
from trainer import absence, rendezvous
from trainer.exceptions import RecipeError
from trainer.rendezvous import BY_ENVIRONMENT, Meeting


@dataclass(frozen=True, kw_only=True)
class World:
    """Place of this process among the others."""

    rank: int
    local_rank: int
    size: int
    #: What this process computes on; several under strategies that have more than one in a process. On a machine
    #: without GPUs they are logical: the same CPU several times.
    devices: tuple[torch.device, ...]

    @property
    def device(self) -> torch.device:
        """The first device: where samples go, and what NCCL is bound to."""
        return self.devices[0]

    @property
    def leads(self) -> bool:
        """Whether this rank writes what is written once."""
        return self.rank == 0


def describe(environment: Mapping[str, str], gpus: int, strategy: Strategy | None = None) -> World:
    """The place that the launcher gave this process; devices follow LOCAL_RANK, never RANK.

    Raises RecipeError if there are GPUs, but fewer than this node's processes need.
    """
    strategy = strategy or Ddp()
    local_rank = int(environment.get("LOCAL_RANK", "0"))
    return World(
        rank=int(environment.get("RANK", "0")),
        local_rank=local_rank,
        size=int(environment.get("WORLD_SIZE", "1")),
        devices=_devices(environment, gpus, strategy, local_rank),
    )


def _devices(
    environment: Mapping[str, str], gpus: int, strategy: Strategy, local_rank: int
) -> tuple[torch.device, ...]:
    """The part of the node's devices that is this process's: GPUs in order, or logical ones."""
    # A launcher that does not say how many ranks are here has no servers behind the others.
    here = environment.get("LOCAL_WORLD_SIZE")
    workers = local_rank + 1 if here is None else int(here) - strategy.servers_per_node
    if local_rank >= workers:
        return (torch.device("cpu"),)
    if not gpus:
        allocated = int(environment.get(layout.DEVICES, "0")) // workers
        return (torch.device("cpu"),) * strategy.devices_per_process(allocated or None)
    count = strategy.devices_per_process(gpus // workers or None)
    if (local_rank + 1) * count > gpus:
        raise RecipeError(
            f"local rank {local_rank} needs {count} GPU(s) after those of the ranks before it, but {gpus} are visible: "
            f"start at most {gpus // count} rank(s), or lower strategy.devices"
        )
    return tuple(torch.device("cuda", local_rank * count + number) for number in range(count))


def threads_per_rank(environment: Mapping[str, str], cores: int) -> int | None:
    """An even share of the cores; None if the environment decides."""
    if "OMP_NUM_THREADS" in environment:
        return None
    return max(1, cores // int(environment.get("LOCAL_WORLD_SIZE", "1")))


@contextmanager
def joined(strategy: Strategy | None = None, held: Meeting = BY_ENVIRONMENT) -> Iterator[World]:
    """The process group for the time of the block: NCCL for GPU tensors, gloo for those on the CPU.

    What uses the group must be gone at the end of the block: make models in a function that is called in it. Raises
    PeerError when another rank is lost in a collective operation.
    """
    gloo.finish_at_exit()
    os.environ.update(network.found(os.environ))
    environment = dict(os.environ)
    world = describe(environment, torch.cuda.device_count(), strategy)
    if (threads := threads_per_rank(environment, len(os.sched_getaffinity(0)))) is not None:
        torch.set_num_threads(threads)
    store = rendezvous.meet(held, world.rank, world.size)
    rendezvous.initialise(held, store, world.rank, world.size, **_bound(world, strategy))
    try:
        yield world
    except SystemExit as left:
        # A clean stop: all ranks leave at the same step.
        if not left.code:
            traceback.clear_frames(left.__traceback__)
            _destroy()
        raise
    except RuntimeError as error:
        if store is not None and (lost := absence.explain(error, store, world.rank, world.size)):
            raise lost from error
        raise
    else:
        _destroy()


def _bound(world: World, strategy: Strategy | None) -> dict[str, Any]:
    """Binds NCCL to the device, where every rank has exactly one: it then connects at once."""
    if world.device.type == "cpu":
        return {}
    torch.cuda.set_device(world.device)
    share.limit(world.devices)
    one_each = len(world.devices) == 1 and not (strategy and strategy.servers_per_node)
    return {"device_id": world.device} if one_each else {}


def _destroy() -> None:
    # Models in reference cycles still hold the group, and gloo's threads with it.
    gc.collect()
    # A rank that leaves early takes the connections of the others with it.
    dist.barrier()
    dist.destroy_process_group()


def summed(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of every rank's tensor; the argument is left alone."""
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def added(values: list[float]) -> list[float]:
    """The sum of every rank's values, the same on all of them; a rank without any adds nothing."""
    everybody: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everybody, values)
    return [sum(column) for column in zip(*filter(None, everybody), strict=True)]


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The piece of a DTensor that this rank holds; any other tensor itself."""
    own: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own


def all_reduce_bytes(size: int, ranks: int) -> int:
    """What each rank sends when so many bytes are summed over the ranks in a ring (Patarasuk and Yuan 2009).

    Which algorithm the library takes it does not tell.
    """
    return 2 * size * (ranks - 1) // ranks


def gathered(value: Any, world: World) -> list[Any]:
    """Every rank's value, by rank; empty on all ranks but 0."""
    values: list[Any] = [None] * world.size
    dist.gather_object(value, values if world.leads else None)
    return values if world.leads else []
