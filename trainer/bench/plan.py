"""Which strategies are measured on how many devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchyard.recipe import Recipe
from torchyard.recipe.strategies import Strategy

#: From one process through the history of data parallelism to DDP.
STRATEGIES: tuple[str, ...] = ("dp", "broadcast", "parameter_server", "ring", "ddp")
COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One training to be timed."""

    strategy: str
    devices: int
    #: Processes that torchrun starts.
    processes: int
    recipe: Recipe


def counts(devices: int) -> list[int]:
    """The device counts to measure on a box with so many."""
    return [count for count in COUNTS if count <= devices]


def cases(recipe: Recipe, strategies: Sequence[str], numbers: Sequence[int], effective_batch: int) -> list[Case]:
    """One process first, which all others are compared with; the effective batch is the same in every case."""
    made = [case(recipe, "single", 1, effective_batch)]
    for name in strategies:
        made += [case(recipe, name, devices, effective_batch) for devices in numbers if devices > 1]
    return made


def case(recipe: Recipe, strategy: str, devices: int, effective_batch: int) -> Case:
    given: dict[str, Any] = recipe.model_dump(mode="json", exclude={"batch_size"})
    fitting = Recipe.model_validate({**given, "strategy": strategy, "global_batch_size": effective_batch})
    options: Strategy = fitting.strategy
    return Case(strategy=strategy, devices=devices, processes=options.processes(devices), recipe=fitting)
