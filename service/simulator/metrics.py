"""What a simulation comes to: times, use of the GPUs, and fairness over users.

**Jain.** At each moment the GPUs are divided among the users who have jobs, waiting or running, as evenly as possible,
nobody getting more than their jobs ask for (max-min): that is each user's entitlement. A user's satisfaction is the GPU
time that their jobs held, divided by the entitlement over the whole time, and at most 1: who got more than that
because others had nothing to run wronged nobody by it. Reported is Jain's index (sum² / (n · sum of squares)) of the
users' satisfaction: 1 if nobody fell behind, 1/n if one got everything. Who has twice the weight of another is entitled
to twice as much. A quota takes nothing from the entitlement, so that what it keeps from somebody shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from service.simulator.engine import Run
from service.simulator.trace import SECOND, Cluster

#: By user, where somebody has another than 1.
Weights = Mapping[str, float]
ALIKE: Weights = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """Times in seconds."""

    #: Completion times: from the submission to the end.
    mean_jct: float
    p50_jct: float
    p99_jct: float
    #: Time not running, whenever that was.
    mean_wait: float
    p99_wait: float
    #: GPU time held by jobs, of all that there was from the first submission to the last end.
    utilization: float
    makespan: float
    jain: float
    preemptions: int
    #: GPU time of starts after preemptions, in which no work was done.
    gpu_seconds_lost: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What a user was entitled to and got, in GPU-seconds, and how long their jobs waited in the mean, in seconds."""

    user: str
    entitled: float
    got: float
    mean_wait: float

    @property
    def satisfaction(self) -> float:
        """The part of the entitlement that the user got, at most 1."""
        return min(1.0, self.got / self.entitled) if self.entitled else 1.0


def measure(runs: Sequence[Run], cluster: Cluster, weights: Weights = ALIKE) -> Metrics:
    """The figures of all jobs of one simulation."""
    begin_us = min(run.job.submit_us for run in runs)
    makespan = (max(run.end_us for run in runs) - begin_us) / SECOND
    jct = np.array([run.end_us - run.job.submit_us for run in runs]) / SECOND
    held = np.array([run.held_us for run in runs]) / SECOND
    gpus = np.array([run.gpus for run in runs])
    lost = sum(spell.lost_us * run.gpus for run in runs for spell in run.spells) / SECOND
    wait = jct - held
    return Metrics(
        mean_jct=float(jct.mean()),
        p50_jct=float(np.percentile(jct, 50)),
        p99_jct=float(np.percentile(jct, 99)),
        mean_wait=float(wait.mean()),
        p99_wait=float(np.percentile(wait, 99)),
        utilization=float((held * gpus).sum() / (cluster.total * makespan)) if makespan else 0.0,
        makespan=makespan,
        jain=jain(standing.satisfaction for standing in standings(runs, cluster, weights)),
        preemptions=sum(len(run.spells) - 1 for run in runs),
        gpu_seconds_lost=lost,
    )


def jain(values: Iterable[float]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything; 1 of nothing."""
    array = np.fromiter(values, dtype=float)
    squares = float((array**2).sum()) * len(array)
    return float(array.sum()) ** 2 / squares if squares else 1.0


def standings(runs: Sequence[Run], cluster: Cluster, weights: Weights = ALIKE) -> list[Standing]:
    """What each user was entitled to and got, in the order of their names."""
    users = sorted({run.job.user for run in runs})
    numbers = {user: number for number, user in enumerate(users)}
    got, waited, jobs = np.zeros((3, len(users)))
    moments: list[tuple[int, int, int]] = []
    for run in runs:
        number = numbers[run.job.user]
        got[number] += run.gpus * run.held_us / SECOND
        waited[number] += (run.end_us - run.job.submit_us - run.held_us) / SECOND
        jobs[number] += 1
        moments += [(run.job.submit_us, number, run.gpus), (run.end_us, number, -run.gpus)]
    entitled = _entitled(sorted(moments), np.array([weights.get(user, 1.0) for user in users]), cluster.total)
    return [
        Standing(user=user, entitled=float(entitled[n]), got=float(got[n]), mean_wait=float(waited[n] / jobs[n]))
        for user, n in numbers.items()
    ]


def _entitled(moments: Sequence[tuple[int, int, int]], weights: NDArray[np.float64], gpus: int) -> NDArray[np.float64]:
    """GPU-seconds of each user's max-min share over time; `moments` are when, whose and by how much demand changes."""
    demand, total = np.zeros((2, len(weights)))
    last_us = moments[0][0]
    for at_us, user, change in moments:
        if at_us > last_us:
            total += share_out(demand, gpus, weights) * ((at_us - last_us) / SECOND)
            last_us = at_us
        demand[user] += change
    return total


def share_out(demand: NDArray[np.float64], gpus: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The GPUs divided in proportion to the weights, nobody getting more than they ask for."""
    if demand.sum() <= gpus:
        return demand.copy()
    # A level is what a unit of weight gets. Those whose demand is met at the lowest levels come first.
    needed = demand / weights
    order = np.argsort(needed, kind="stable")
    met = np.concatenate(([0.0], np.cumsum(demand[order])[:-1]))
    # If the first k demands are met in full, the others share the rest at `levels[k]`; the first that suffices is it.
    levels = (gpus - met) / np.cumsum(weights[order][::-1])[::-1]
    found = np.flatnonzero(needed[order] > levels)
    shares: NDArray[np.float64] = np.minimum(demand, levels[found[0]] * weights)
    return shares
