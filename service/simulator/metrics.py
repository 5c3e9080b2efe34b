"""Metrics of a simulation: times, utilization of the GPUs, and fairness between users.

**Jain.** At each moment the GPUs are divided among the users who have jobs, waiting or running, as evenly as possible,
no user getting more than their jobs ask for (max-min): that is each user's entitlement. A user's satisfaction is the
GPU time that their jobs held, divided by the entitlement over the whole time, and at most 1: more than the entitlement,
when others had nothing to run, is at the cost of no one. Reported is Jain's index (sum² / (n · sum of squares)) of the
users' satisfaction: 1 if all are equally satisfied, 1/n if one user got everything. A user with twice the weight of
another is entitled to twice as much. A quota does not reduce the entitlement, so that its effect shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from service.scheduler.explain.idle_time import IdleTime
from service.scheduler.model.columns import Bools, Floats, Ints
from service.simulator.runs import JobRun
from service.simulator.trace import SECOND, Cluster

#: A shorter running time counts as this one in the slowdown, in seconds.
SLOWDOWN_S = 10
#: Changes of demand that are processed at a time.
_MOMENTS = 4096
#: Weights by user; a user who is absent has 1.
Weights = Mapping[str, float]
ALIKE: Weights = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationMetrics:
    """Metrics of one simulation; times in seconds."""

    #: Completion times: from the submission to the end.
    mean_jct: float
    p50_jct: float
    p99_jct: float
    #: Time from the submission to the end in which the job did not run.
    mean_wait: float
    p99_wait: float
    #: Part of the GPU time from the first submission to the last end that jobs held, 0 to 1.
    utilization: float
    makespan: float
    jain: float
    preemptions: int
    #: GPU time of restarts after preemptions, in which no progress was made, and of trials of jobs that started over.
    gpu_seconds_lost: float
    #: How often a job was put back after its trial, to start from the beginning.
    restarts: int
    #: Mean of completion time by running time, of which at least `SLOWDOWN_S` counts.
    mean_slowdown: float
    #: Part of all GPU time that was unused although a waiting job would have fitted (`idle`), what was kept, and what
    #: was reserved for others or on a node that drained for a maintenance.
    avoidable_idle: float
    kept_idle: float
    reserved_idle: float


@dataclass(frozen=True, kw_only=True, slots=True)
class UserStanding:
    """GPU time that a user was entitled to and got, in GPU-seconds, and the mean wait of their jobs, in seconds."""

    user: str
    entitled: float
    got: float
    mean_wait: float

    @property
    def satisfaction(self) -> float:
        """Part of the entitlement that the user got, at most 1."""
        return min(1.0, self.got / self.entitled) if self.entitled else 1.0


def measure(
    runs: Sequence[JobRun], cluster: Cluster, stood: Iterable[UserStanding], idle: IdleTime
) -> SimulationMetrics:
    """Return the metrics of a simulation from its runs, its users' standings and its idle time."""
    begin_us = min(run.job.submit_us for run in runs)
    makespan = (max(run.end_us for run in runs) - begin_us) / SECOND
    jct = np.array([run.end_us - run.job.submit_us for run in runs]) / SECOND
    held = np.array([run.held_us for run in runs]) / SECOND
    gpus = np.array([run.gpus for run in runs])
    lost = sum(spell.lost_us * run.gpus for run in runs for spell in run.spells) / SECOND
    wait = jct - held
    lasts = np.array([run.job.duration_us for run in runs]) / SECOND
    total_us = cluster.total * makespan * SECOND or 1
    return SimulationMetrics(
        mean_jct=float(jct.mean()),
        p50_jct=float(np.percentile(jct, 50)),
        p99_jct=float(np.percentile(jct, 99)),
        mean_wait=float(wait.mean()),
        p99_wait=float(np.percentile(wait, 99)),
        utilization=float((held * gpus).sum() / (cluster.total * makespan)) if makespan else 0.0,
        makespan=makespan,
        jain=jain(standing.satisfaction for standing in stood),
        preemptions=sum(len(run.spells) - 1 - run.restarts for run in runs),
        gpu_seconds_lost=lost,
        restarts=sum(run.restarts for run in runs),
        mean_slowdown=float(np.maximum(jct / np.maximum(lasts, SLOWDOWN_S), 1).mean()),
        avoidable_idle=idle.avoidable_us / total_us,
        kept_idle=idle.kept_us / total_us,
        reserved_idle=idle.reserved_us / total_us,
    )


def jain(values: Iterable[float]) -> float:
    """Return Jain's index of fairness: 1 if all are equal, 1/n if one has everything; 1 without values."""
    array = np.fromiter(values, dtype=float)
    squares = float((array**2).sum()) * len(array)
    return float(array.sum()) ** 2 / squares if squares else 1.0


def standings(runs: Sequence[JobRun], cluster: Cluster, weights: Weights = ALIKE) -> list[UserStanding]:
    """Return each user's standing, in the order of their names."""
    users = sorted({run.job.user for run in runs})
    numbers = {user: number for number, user in enumerate(users)}
    whose = np.array([numbers[run.job.user] for run in runs])
    gpus = np.array([run.gpus for run in runs])
    submit_us, end_us = np.array([(run.job.submit_us, run.end_us) for run in runs]).T
    held_us = np.array([run.held_us for run in runs])
    got = np.bincount(whose, gpus * (held_us / SECOND))
    waited = np.bincount(whose, (end_us - submit_us - held_us) / SECOND)
    entitled = _entitled(
        np.concatenate((submit_us, end_us)),
        np.tile(whose, 2),
        np.concatenate((gpus, -gpus)),
        np.array([weights.get(user, 1.0) for user in users]),
        cluster.total,
    )
    each = zip(users, entitled.tolist(), got.tolist(), (waited / np.bincount(whose)).tolist(), strict=True)
    return [UserStanding(user=user, entitled=due, got=had, mean_wait=wait) for user, due, had, wait in each]


def _entitled(at_us: Ints, whose: Ints, changes: Ints, weights: Floats, gpus: int) -> Floats:
    """Return each user's max-min share over the whole time, in GPU-seconds.

    `at_us`, `whose` and `changes` are the changes of demand: when, of which user, and by how many GPUs.
    """
    in_order = np.argsort(at_us, kind="stable")
    at_us, whose, changes = at_us[in_order], whose[in_order], changes[in_order]
    lasts = np.diff(at_us, append=at_us[-1]) / SECOND
    demand, total = np.zeros((2, len(weights)))
    for first in range(0, len(at_us), _MOMENTS):
        some = slice(first, first + _MOMENTS)
        steps = np.zeros((len(at_us[some]), len(weights)))
        steps[np.arange(len(steps)), whose[some]] = changes[some]
        demands = demand + np.cumsum(steps, axis=0)
        total += lasts[some] @ share_out(demands, gpus, weights)
        demand = demands[-1]
    return total


def share_out(demand: Floats, gpus: float, weights: Floats) -> Floats:
    """Divide the GPUs in proportion to the weights, no user getting more than they ask for.

    `demand` has shape (moments, users); the shares have the same, and each row is divided independently.
    """
    # A level is what a unit of weight gets. Those whose demand is met at the lowest levels come first.
    needed = demand / weights
    order = np.argsort(needed, kind="stable")
    needed, asked = np.take_along_axis(needed, order, -1), np.take_along_axis(demand, order, -1)
    others = np.cumsum(weights[order][..., ::-1], axis=-1)[..., ::-1]
    # If the first k demands are met in full, the others share the rest at `levels[k]`; the first that suffices is it.
    levels = (gpus - np.cumsum(asked, axis=-1) + asked) / others
    short: Bools = needed > levels
    found = np.take_along_axis(levels, short.argmax(-1, keepdims=True), -1)
    shares: Floats = np.minimum(demand, np.where(short.any(-1, keepdims=True), found, np.inf) * weights)
    return shares
