"""Collective operations on tensors and values of all ranks."""

from typing import Any

import torch
import torch.distributed as dist

from trainer.distributed.world import World


def all_reduce_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum of every rank's tensor; the argument is left alone."""
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def sum_over_ranks(values: list[float]) -> list[float]:
    """Return the sums of every rank's values, the same on all of them; a rank without any adds nothing."""
    everybody: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everybody, values)
    return [sum(column) for column in zip(*filter(None, everybody), strict=True)]


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return the piece of a DTensor that this rank holds; any other tensor itself."""
    own: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own


def all_reduce_bytes(size: int, ranks: int) -> int:
    """Bytes that each rank sends to sum `size` bytes over the ranks in a ring (Patarasuk and Yuan 2009).

    Which algorithm the library takes it does not tell.
    """
    return 2 * size * (ranks - 1) // ranks


def gather_to_rank_0(value: Any, world: World) -> list[Any]:
    """Return every rank's value, by rank; empty on all ranks but 0."""
    values: list[Any] = [None] * world.size
    dist.gather_object(value, values if world.leads else None)
    return values if world.leads else []
