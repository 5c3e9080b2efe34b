"""Proof of the strategy: sizes and bytes sent, which show that the recipe's strategy and no other was at work."""

import json
import os
from pathlib import Path
from typing import Any

from torchyard.injob import layout
from trainer.distributed.collectives import gather_to_rank_0
from trainer.distributed.world import World
from trainer.strategies.base import Strategy

NAME = "strategy.json"


def record(strategy: Strategy, name: str, steps: int, world: World) -> dict[str, Any] | None:
    """Gather every rank's proof on rank 0 and write it to the job's outputs; all ranks call it.

    `bytes_sent_per_step` is what a rank sent to others, over the steps of training since the start.
    """
    own = {"rank": world.rank, **strategy.proof(), "bytes_sent_per_step": strategy.bytes_sent // max(steps, 1)}
    ranks = gather_to_rank_0(own, world)
    if not world.leads:
        return None
    proof = {"strategy": name, "world_size": world.size, "ranks": ranks}
    if folder := os.environ.get(layout.OUTPUT_DIR):
        (Path(folder) / NAME).write_text(json.dumps(proof, indent=2))
    return proof
