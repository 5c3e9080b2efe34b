"""Rules of limits: what counts as hanging, as idle devices, as too long a wait. Pure: no database, no
clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from torchyard.spec import HangPolicy

#: Percent of a GPU's time, and of one core's, up to which it does nothing.
IDLE_GPU = 5.0
IDLE_CPU = 5.0
#: Nobody knows what a run did in a longer hole between two samples.
HOLE_US = 60_000_000
#: Steps that the median is taken over, the newest.
STEPS = 100


def median_step_us(points: Sequence[tuple[int, int]]) -> float | None:
    """Return the median time of a step in microseconds; None before the second step.

    `points` are what one process reported, ``(step, time in µs)`` in its order. A report may come every
    so many steps, and a step may be reported again.
    """
    times: list[float] = []
    for (step, time_us), (later, later_us) in pairwise(points):
        if later > step:
            times.append(max(0.0, (later_us - time_us) / (later - step)))
    return median(times) if times else None


def interval(points: Sequence[tuple[int, int]]) -> int:
    """Return how many steps lie between two reports, as a rule; 1 if nothing is known."""
    gaps = [later - step for (step, _), (later, _) in pairwise(points) if later > step]
    return max(1, round(median(gaps))) if gaps else 1


def patience_s(policy: HangPolicy, points: Sequence[tuple[int, int]]) -> float:
    """Return how long a run may report nothing before it counts as hanging, in seconds.

    A process that reports every so many steps is quiet in between, so that long is granted beside `factor` steps.
    """
    step_us = median_step_us(points) or 0.0
    return max(float(policy.after), max(policy.factor, 2.0 * interval(points)) * step_us / 1e6)


def busy(values: Mapping[str, float], *, gpus: bool) -> bool | None:
    """Tell whether a run did anything, by a sample of its telemetry; None where that is not measured (MIG instances).

    A run with GPUs is judged by them alone, one without by its processes' CPU time.
    """
    if not gpus:
        return None if "cpu.percent" not in values else values["cpu.percent"] > IDLE_CPU
    found = [value for name, value in values.items() if name.startswith("gpu.") and name.endswith(".utilization")]
    return max(found) > IDLE_GPU if found else None


@dataclass(frozen=True, kw_only=True)
class Idleness:
    """Since when a run does nothing on one node, by that node's clock."""

    newest_us: int
    since_us: int | None = None
    """None while it works, or nobody can tell."""

    @property
    def lasts_s(self) -> float:
        """Seconds for which it has done nothing."""
        return 0.0 if self.since_us is None else (self.newest_us - self.since_us) / 1e6

    def after(self, time_us: int, working: bool | None) -> "Idleness":
        """Return the idleness with one more sample."""
        if working is not False:
            return Idleness(newest_us=time_us)
        known = self.since_us is not None and time_us - self.newest_us <= HOLE_US
        return Idleness(newest_us=time_us, since_us=self.since_us if known else time_us)


def monotonic_at(moment_us: int, now_us: int, monotonic_s: float) -> float:
    """Return a moment of the wall clock (µs) by the monotonic one (s), which nobody sets, given both clocks as of now.

    One that is still to come is now: the wall clock was set back.
    """
    return monotonic_s - max(0, now_us - moment_us) / 1e6
