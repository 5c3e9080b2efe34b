"""The strategies of a comparison and the numbers of devices that each is measured on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchyard.recipe import Recipe
from torchyard.recipe.strategies import StrategyOptions

#: From one process through the history of data parallelism to DDP.
STRATEGIES: tuple[str, ...] = ("dp", "broadcast", "parameter_server", "ring", "ddp")
#: What most people choose between.
COMMON: tuple[str, ...] = ("dp", "ddp")
COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class BenchCase:
    """One training to be timed."""

    strategy: str
    devices: int
    #: Processes that torchrun starts.
    processes: int
    recipe: Recipe


def counts(devices: int) -> list[int]:
    """The device counts to measure on a box with so many."""
    return [count for count in COUNTS if count <= devices]


def cases(
    recipe: Recipe, strategies: Sequence[str], numbers: Sequence[int], batch: int, *, per_device: bool = False
) -> list[BenchCase]:
    """One process first, which all others are compared with; every case has the same batch, as `case` says."""
    made = [case(recipe, "single", 1, batch, per_device=per_device)]
    for name in strategies:
        made += [case(recipe, name, devices, batch, per_device=per_device) for devices in numbers if devices > 1]
    return made


def case(recipe: Recipe, strategy: str, devices: int, batch: int, *, per_device: bool = False) -> BenchCase:
    """One training; `batch` is the effective batch, or `per_device` the samples of each device."""
    given: dict[str, Any] = recipe.model_dump(mode="json", exclude={"batch_size", "global_batch_size"})
    size = {"batch_size" if per_device else "global_batch_size": batch}
    # Every pass is a whole batch, so that all take as long.
    fitting = Recipe.model_validate({**given, "strategy": strategy, "drop_last": True, **size})
    options: StrategyOptions = fitting.strategy
    return BenchCase(strategy=strategy, devices=devices, processes=options.processes(devices), recipe=fitting)
