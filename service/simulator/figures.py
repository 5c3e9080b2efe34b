"""Plots of the queue's length and the use of the GPUs over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.simulator.runs import JobRun
from service.simulator.trace import SECOND, Cluster

Floats = NDArray[np.float64]
#: Points of a line; each is the mean over its part of the time.
POINTS = 1000
FORMATS = (".png", ".svg")
_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Course:
    """Course of a simulation: means over equal intervals of time."""

    hours: Floats
    #: Jobs that wait.
    queue: Floats
    #: Part of all GPUs that is held.
    held: Floats


def course(runs: Sequence[JobRun], cluster: Cluster, points: int = POINTS) -> Course:
    """Return the course of a simulation in `points` intervals."""
    begin_us, end_us = min(run.job.submit_us for run in runs), max(run.end_us for run in runs)
    edges = np.linspace(begin_us, max(end_us, begin_us + SECOND), points + 1)
    spells = [(spell, run.gpus) for run in runs for spell in run.spells]
    active = _means([(run.job.submit_us, run.end_us, 1) for run in runs], edges)
    running = _means([(spell.start_us, spell.end_us, 1) for spell, _ in spells], edges)
    held = _means([(spell.start_us, spell.end_us, gpus) for spell, gpus in spells], edges)
    hours = ((edges[:-1] + edges[1:]) / 2 - begin_us) / SECOND / _HOUR
    return Course(hours=hours, queue=np.maximum(active - running, 0), held=held / cluster.total)


def _means(stretches: Iterable[tuple[int, int, float]], edges: Floats) -> Floats:
    """Return the mean, between each two edges, of the sum of step functions given as (from, to, height)."""
    from_us, to_us, height = np.array(list(stretches), dtype=float).T
    moments = np.concatenate((from_us, to_us))
    in_order = np.argsort(moments, kind="stable")
    moments = moments[in_order]
    level = np.cumsum(np.concatenate((height, -height))[in_order])
    area = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(moments))))
    means: Floats = np.diff(np.interp(edges, moments, area)) / np.diff(edges)
    return means


def plot(courses: Sequence[tuple[str, Course]], path: Path) -> None:
    """Write a PNG or SVG with a line for each policy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    queue, held = figure.subplots(2, 1, sharex=True)
    for name, one in courses:
        queue.plot(one.hours, one.queue, linewidth=1, label=name)
        held.plot(one.hours, 100 * one.held, linewidth=1, label=name)
    queue.set_ylabel("jobs waiting")
    queue.set_ylim(bottom=0)
    queue.legend(loc="upper right")
    held.set_ylabel("GPUs held, %")
    held.set_ylim(0, 102)
    held.set_xlabel("hours since the first submission")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
