"""A ring all-reduce written on send and receive.

The algorithm is Baidu's of 2017 (Andrew Gibiansky, "Bringing HPC Techniques to Deep Learning", after Patarasuk and
Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009): the vector is cut into one chunk
for each rank; in ranks - 1 rounds every rank passes a partial sum to its right neighbour until each rank has one
chunk whole (reduce-scatter), in as many more rounds the whole chunks go around (all-gather). A rank sends
2 (ranks - 1) / ranks of the vector, however many ranks there are; the time grows with the rounds.

It is written on ``torch.distributed.batch_isend_irecv``. Slower than the library's own all-reduce, which does the
same in C++, in pieces that keep the link busy, and under DDP while backward still runs. Never run on two GPUs.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from torchyard.recipe.strategies import Ring
from trainer.strategies.by_hand import ByHandStrategy


class RingStrategy(ByHandStrategy):
    """A replica on each rank, gradients added around a ring. Buffers follow rank 0's after each step."""

    options: Ring

    def combine(self, flat: Tensor) -> int:
        return all_reduce(flat, self.world.rank, self.world.size)

    def proof(self) -> dict[str, Any]:
        left, right = neighbours(self.world.rank, self.world.size)
        return {**super().proof(), "receives_from": left, "sends_to": right, "chunks": self.world.size}


def all_reduce(vector: Tensor, rank: int, size: int) -> int:
    """Replace a contiguous vector by the sum of all ranks', bitwise the same on all; returns the bytes sent.

    Every chunk is added up in one order and then copied, which is why no rank can have other bits.
    """
    chunks = vector.tensor_split(size)
    arriving = torch.empty_like(chunks[0])
    sent = 0
    for turn in range(size - 1):
        into = chunks[(rank - turn - 1) % size]
        received = arriving[: into.numel()]
        sent += _pass_on(chunks[(rank - turn) % size], received, rank, size)
        into += received
    for turn in range(size - 1):
        sent += _pass_on(chunks[(rank - turn + 1) % size], chunks[(rank - turn) % size], rank, size)
    return sent


def neighbours(rank: int, size: int) -> tuple[int, int]:
    """The ranks that this one receives from and sends to."""
    return (rank - 1) % size, (rank + 1) % size


def _pass_on(outgoing: Tensor, incoming: Tensor, rank: int, size: int) -> int:
    """Send to the right while receiving from the left; returns the bytes sent."""
    left, right = neighbours(rank, size)
    operations = [dist.P2POp(dist.isend, outgoing, right), dist.P2POp(dist.irecv, incoming, left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return outgoing.nbytes
