"""Place of this process among the ranks, and the devices that it computes on."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from torchyard.injob import layout
from torchyard.recipe.strategies import Ddp, StrategyOptions
from trainer.exceptions import RecipeError


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
        """True on rank 0, which writes what is written once."""
        return self.rank == 0


def describe(environment: Mapping[str, str], gpus: int, strategy: StrategyOptions | None = None) -> World:
    """Return the place that the launcher gave this process; devices follow LOCAL_RANK, never RANK.

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
    environment: Mapping[str, str], gpus: int, strategy: StrategyOptions, local_rank: int
) -> tuple[torch.device, ...]:
    """Return this process's share of the node's devices: GPUs in order, or logical ones."""
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
    """Return an even share of the cores; None if the environment decides."""
    if "OMP_NUM_THREADS" in environment:
        return None
    return max(1, cores // int(environment.get("LOCAL_WORLD_SIZE", "1")))
