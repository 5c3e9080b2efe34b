"""Early stopping of a sweep's trials: asynchronous successive halving. Pure.

L. Li, K. Jamieson, A. Rostamizadeh, E. Gonina, J. Ben-tzur, M. Hardt, B. Recht, A. Talwalkar: "A System for Massively
Parallel Hyperparameter Tuning", MLSys 2020. This is its form that stops instead of promoting, since a trial that was
stopped would have to load its state again: a trial runs on until it is not among the best at the last rung that it has
reached. Nobody waits for a rung to fill; so long as fewer than `reduction` trials have reached one, it stops nobody.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torchyard.ids import JobId
from torchyard.spec.sweeps import EarlyStopping

#: Rungs that are looked at: with the smallest reduction the last is 2^40 times as far as the first.
MAX_RUNGS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyStop:
    """A trial that is not among the best, and the reason."""

    trial: JobId
    rung: int
    """From 1."""
    value: float
    among: int
    """Trials that have reached the rung."""


def rungs(stopping: EarlyStopping, furthest: int) -> list[int]:
    """Return the steps of the rungs up to the furthest step that any trial has made."""
    steps = [stopping.first * stopping.reduction**number for number in range(MAX_RUNGS)]
    return [step for step in steps if step <= furthest]


def stops(
    stopping: EarlyStopping, reached: Mapping[JobId, Sequence[float]], running: Iterable[JobId]
) -> list[EarlyStop]:
    """Return the running trials that are to be stopped.

    `reached` has for each trial the metric at every rung that it got to, from the first; ended trials count too, and
    NaN is worse than everything. Of equal ones none is stopped for the other's sake.
    """
    by_rung: dict[int, list[float]] = {}
    for values in reached.values():
        for rung, value in enumerate(values, 1):
            by_rung.setdefault(rung, []).append(_loss(stopping, value))
    limits = {rung: _limit(losses, stopping.reduction) for rung, losses in by_rung.items()}
    found = []
    for trial in sorted(running):
        values = reached.get(trial, ())
        rung = len(values)
        if values and _loss(stopping, values[-1]) > limits[rung]:
            found.append(EarlyStop(trial=trial, rung=rung, value=values[-1], among=len(by_rung[rung])))
    return found


def _limit(losses: list[float], reduction: int) -> float:
    """Return what a trial may lose at most to go on."""
    kept = len(losses) // reduction
    return sorted(losses)[kept - 1] if kept else math.inf


def _loss(stopping: EarlyStopping, value: float) -> float:
    if math.isnan(value):
        return math.inf
    return value if stopping.mode == "min" else -value


def stop_message(stopping: EarlyStopping, stop: EarlyStop, step: int) -> str:
    """Tell a person why a trial was stopped."""
    best = _ORDINALS.get(stopping.reduction, f"1/{stopping.reduction}")
    return (
        f"stopped early at step {step}: {stopping.metric} {stop.value:.6g} is worse than the best {best} of "
        f"{stop.among} trials at rung {stop.rung} (step {stopping.first * stopping.reduction ** (stop.rung - 1)})"
    )


_ORDINALS = {2: "half", 3: "third", 4: "quarter", 5: "fifth"}
