"""Collective operations on tensors and values of all ranks."""

from typing import Any

import torch
import torch.distributed as dist

from trainer.distributed.world import World


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
