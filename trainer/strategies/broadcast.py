"""Gradients reduced to one rank, averaged there and broadcast by hand: the step between DataParallel and DDP.

The two collectives are ``torch.distributed.reduce`` and ``broadcast``
(https://docs.pytorch.org/docs/stable/distributed.html). Slow by design: all gradients pass through rank 0, which
receives and sends (ranks - 1) times their size in each step, while the others wait; nothing overlaps with backward.
Never run on two GPUs.
"""

from typing import Any

import torch.distributed as dist
from torch import Tensor

from torchyard.recipe.strategies import Broadcast
from trainer.strategies.by_hand import ByHandStrategy


class BroadcastStrategy(ByHandStrategy):
    """A replica on each rank, kept equal by rank 0's average. Buffers follow rank 0's after each step, too."""

    options: Broadcast

    @property
    def averaged_over(self) -> int:
        return self.world.size

    def combine(self, flat: Tensor) -> int:
        dist.reduce(flat, dst=0)
        if self.world.leads:
            flat /= self.world.size
        dist.broadcast(flat, src=0)
        # The root receives what the others send once, and gives the average to each of them.
        return flat.nbytes * (self.world.size - 1) if self.world.leads else flat.nbytes

    def proof(self) -> dict[str, Any]:
        return {**super().proof(), "role": "root" if self.world.leads else "leaf"}
