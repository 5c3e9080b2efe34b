"""Bandwidth between ranks on several nodes, and whether training waits for it.

Several nodes on a slow network train slower than one: the queue never splits what fits one node unless the spec says
so, and a run that spans nodes measures and says what it costs. The rate is a metric of the run, which the service
remembers for the next one (`torchyard.network.speed`).
"""

import time
from collections.abc import Mapping

import torch
import torch.distributed as dist

from torchyard.network import speed
from trainer.distributed.collectives import all_reduce_bytes
from trainer.distributed.world import World

#: Bytes of the tensor that is summed, twice: the first time connects.
PROBE = 8 * 2**20


def nodes(world: World, environment: Mapping[str, str]) -> int:
    """Nodes that the ranks are on."""
    return world.size // int(environment.get("LOCAL_WORLD_SIZE", world.size))


def measure(world: World) -> float:
    """Measure the bytes a second that a rank sends in an all-reduce over all ranks; all ranks call it."""
    tensor = torch.zeros(PROBE // 4, device=world.device)
    seconds = 0.0
    for _ in range(2):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(tensor)
        float(tensor[0])  # waits for a GPU
        seconds = time.perf_counter() - began
    return all_reduce_bytes(PROBE, world.size) / seconds


def advice(rate: float, sent: float, step_time: float, nodes: int) -> str | None:
    """Warn when the bytes that a rank sends in a step take a large part of it; None when they do not.

    `rate` in bytes a second, `sent` in bytes, `step_time` in seconds.
    """
    if not speed.is_slow(rate, sent, step_time):
        return None
    share = min(speed.share(rate, sent, step_time), 1.0)
    return (
        f"{nodes} nodes exchange {speed.shown(rate)}: the {sent / 1e6:,.1f} MB of each step take about "
        f"{share:.0%} of its {step_time * 1000:,.0f} ms. {speed.MENDS}"
    )
