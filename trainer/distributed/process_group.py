"""The process group: ``env://`` under torchrun, a group of one without it."""

import gc
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._dynamo  # optimizers and DDP load it late; loaded after the process group it keeps gloo's threads alive
import torch.distributed as dist

from torchyard.injob import gloo, share
from torchyard.network import interfaces
from torchyard.recipe.strategies import StrategyOptions
from trainer.distributed import lost_ranks
from trainer.distributed.rendezvous import BY_ENVIRONMENT, Rendezvous, initialise, open_store
from trainer.distributed.world import World, describe, threads_per_rank


@contextmanager
def joined(strategy: StrategyOptions | None = None, rendezvous: Rendezvous = BY_ENVIRONMENT) -> Iterator[World]:
    """Join the process group for the time of the block: NCCL for GPU tensors, gloo for those on the CPU.

    What uses the group must be gone at the end of the block: make models in a function that is called in it. Raises
    PeerError when another rank is lost in a collective operation.
    """
    gloo.finish_at_exit()
    os.environ.update(interfaces.found(os.environ))
    environment = dict(os.environ)
    world = describe(environment, torch.cuda.device_count(), strategy)
    if (threads := threads_per_rank(environment, len(os.sched_getaffinity(0)))) is not None:
        torch.set_num_threads(threads)
    store = open_store(rendezvous, world.rank, world.size)
    initialise(rendezvous, store, world.rank, world.size, **_bound(world, strategy))
    try:
        yield world
    except SystemExit as left:
        # A clean stop: all ranks leave at the same step.
        if not left.code:
            traceback.clear_frames(left.__traceback__)
            _destroy()
        raise
    except RuntimeError as error:
        if store is not None and (lost := lost_ranks.explain(error, store, world.rank, world.size)):
            raise lost from error
        raise
    else:
        _destroy()


def _bound(world: World, strategy: StrategyOptions | None) -> dict[str, Any]:
    """Bind NCCL to the device, where every rank has exactly one: it then connects at once."""
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
