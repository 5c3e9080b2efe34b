"""Base of strategies that bring gradients together themselves, after backward, instead of leaving it to DDP."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.exceptions import RecipeError
from trainer.strategies.base import Strategy, TrainingTask

#: Bytes that travel together, as in DistributedDataParallel: large enough to be quick, small enough to copy.
BUCKET_BYTES = 25 * 2**20


class ByHandStrategy(Strategy):
    """A replica on each rank. Gradients are packed into buckets, and each bucket is brought together when backward
    has ended: nothing overlaps with computing, which makes these strategies slower than DDP.

    A parameter without a gradient is refused, as DDP refuses it: other ranks may have one, and would wait.
    """

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        super().prepare(model, task)
        self._buckets = bucketed(parameter for parameter in self.parameters() if parameter.requires_grad)

    def wrap(self, model: nn.Module) -> nn.Module:
        model.to(self.world.device)
        broadcast_tensors([*model.parameters(), *model.buffers()])
        return model

    @torch.no_grad()
    def exchange(self) -> None:
        for bucket in self._buckets:
            gradients = self._gradients(bucket)
            flat = pack(gradients)
            self.bytes_sent += self.combine(flat)
            unpack(flat, gradients)
        sent = broadcast_tensors(self.model.buffers())
        self.bytes_sent += sent * (self.world.size - 1) if self.world.leads else 0

    @abstractmethod
    def combine(self, flat: Tensor) -> int:
        """Make the vector the same on all ranks, in place; returns the bytes that this rank handed to others."""

    def _gradients(self, bucket: list[Tensor]) -> list[Tensor]:
        found = [parameter.grad for parameter in bucket if parameter.grad is not None]
        if len(found) < len(bucket):
            names = [name for name, parameter in self.model.named_parameters() if _lacks(parameter)]
            raise RecipeError(
                f"{', '.join(names)} got no gradient: let forward use it or set its requires_grad to False, or take "
                "strategy: {name: ddp, find_unused_parameters: true}"
            )
        return found

    def proof(self) -> dict[str, Any]:
        sizes = [sum(parameter.nbytes for parameter in bucket) for bucket in self._buckets]
        return {**super().proof(), "bucket_bytes": sizes}


def _lacks(parameter: Tensor) -> bool:
    return parameter.requires_grad and parameter.grad is None


def broadcast_tensors(tensors: Iterable[Tensor]) -> int:
    """Give rank 0's values to all ranks, in place; returns their bytes."""
    total = 0
    for bucket in bucketed(tensor.detach() for tensor in tensors):
        flat = pack(bucket)
        dist.broadcast(flat, src=0)
        unpack(flat, bucket)
        total += flat.nbytes
    return total


def bucketed(tensors: Iterable[Tensor], limit: int = BUCKET_BYTES) -> list[list[Tensor]]:
    """Groups of tensors of one type, in order, each of at most `limit` bytes (or one tensor)."""
    buckets: list[list[Tensor]] = []
    open_ones: dict[torch.dtype, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        bucket, size = open_ones.get(tensor.dtype, ([], limit))
        if size + tensor.nbytes > limit:
            bucket, size = [], 0
            buckets.append(bucket)
        bucket.append(tensor)
        open_ones[tensor.dtype] = bucket, size + tensor.nbytes
    return buckets


def pack(tensors: list[Tensor]) -> Tensor:
    """Copy all elements to one new vector."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unpack(flat: Tensor, tensors: list[Tensor]) -> None:
    """Write a vector made by `pack` back into tensors of those shapes."""
    for tensor, part in zip(tensors, torch.split(flat, [tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
