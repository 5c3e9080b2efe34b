"""Learning rate schedules by name: pure functions of how far the training is.

They keep no state, so a resumed run, also one with another number of ranks, has the right rate at once.
"""

import math
from bisect import bisect_right
from collections.abc import Callable

from torch.optim import Optimizer

from torchyard.recipe.schedule import Constant, Cosine, MultiStep, Step

#: The factor to the learning rate after so many epochs (with fractions) of so many.
Factor = Callable[[float, int], float]


def constant(options: Constant) -> Factor:  # noqa: ARG001 (all schedules are called alike)
    return lambda _progress, _epochs: 1.0


def step(options: Step) -> Factor:
    return lambda progress, _epochs: options.gamma ** (int(progress) // options.size)


def multistep(options: MultiStep) -> Factor:
    return lambda progress, _epochs: options.gamma ** bisect_right(options.milestones, int(progress))


def cosine(options: Cosine) -> Factor:
    def factor(progress: float, epochs: int) -> float:
        if progress < options.warmup:
            return progress / options.warmup
        done = (progress - options.warmup) / (epochs - options.warmup)
        return options.floor + (1 - options.floor) * (1 + math.cos(math.pi * done)) / 2

    return factor


SCHEDULES: dict[str, Callable[..., Factor]] = {
    "constant": constant,
    "step": step,
    "multistep": multistep,
    "cosine": cosine,
}


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """The learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate
