"""Learning rate schedules by name: pure functions of how far the training is.

They keep no state, so a resumed run, also one with another number of ranks, has the right rate at once.
"""

import math
from bisect import bisect_right
from collections.abc import Callable

from torchyard.recipe.schedule import Constant, Cosine, MultiStep, ScheduleOptions, Step

#: The factor to the learning rate after so many epochs (with fractions) of so many.
Factor = Callable[[float, int], float]


def constant(options: Constant) -> Factor:
    return _warmed(options, lambda _progress, _epochs: 1.0)


def step(options: Step) -> Factor:
    return _warmed(options, lambda progress, _epochs: options.gamma ** (int(progress) // options.size))


def multistep(options: MultiStep) -> Factor:
    return _warmed(options, lambda progress, _epochs: options.gamma ** bisect_right(options.milestones, int(progress)))


def cosine(options: Cosine) -> Factor:
    def factor(progress: float, epochs: int) -> float:
        done = max(0.0, progress - options.warmup) / (epochs - options.warmup)
        return options.floor + (1 - options.floor) * (1 + math.cos(math.pi * done)) / 2

    return _warmed(options, factor)


def _warmed(options: ScheduleOptions, factor: Factor) -> Factor:
    """Return the factor after a linear rise from 0 over the first epochs."""
    if not options.warmup:
        return factor
    return lambda progress, epochs: min(1.0, progress / options.warmup) * factor(progress, epochs)


SCHEDULES: dict[str, Callable[..., Factor]] = {
    "constant": constant,
    "step": step,
    "multistep": multistep,
    "cosine": cosine,
}
