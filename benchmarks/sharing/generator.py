"""Synthetic months of a shared box, heavy-tailed as real ones are.

- **Users** submit at rates that follow Zipf's law (exponent 1.2). Each has an appetite of its own: the median length of
  their jobs (lognormal about the box's, sigma 1) and how often they take more than one GPU (Beta(0.6, 1.4), mean 0.3).
- **Lengths**: lognormal about the user's median; some jobs are instead from a Pareto tail, more often those of users
  with long jobs. A job lasts 5 s to 20 days, and to half of the span at most.
- **GPUs**: 1, or 2, 4, 8 and on boxes of several nodes 16 and 32, in falling proportions.
- **Arrivals**: a Poisson process whose rate follows the hour (down to 0.3 at night, up to 1.7 in the afternoon) and
  halves at weekends; or **bursts**: the jobs of one user at a time, within minutes of each other, as sweeps come.
- **Flags**: which jobs can be stopped, may start over and tell their length is drawn for each job, in the shares given
  (all of them unless said). A job that has a flag at one share has it at every larger one.
- **Load** is the work of all jobs, divided by what the GPUs could do in the span in which they come.

Everything follows from the seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from service.simulator.trace import SECOND, Cluster, TraceJob
from torchyard.spec.restarts import RestartPermission

_DAY = 86_400
#: Jobs of one burst, and seconds between them, on average.
_BURST, _APART = 40, 30
#: GPUs of a job that takes more than one, and how often.
_ONE_NODE = ((2, 4, 8), (0.4, 0.3, 0.3))
_SEVERAL = ((2, 4, 8, 16, 32), (0.35, 0.3, 0.27, 0.06, 0.02))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How long jobs take: median and sigma of the body, part of the tail, and where it begins and how it falls."""

    name: str
    median: float
    sigma: float
    tail: float
    least: float
    alpha: float
    bursts: bool = False


#: Like the months of large companies' clusters that have been published: most jobs take minutes, most GPU time goes to
#: jobs of days.
LONG = Kind(name="long tails", median=720, sigma=1.9, tail=0.07, least=4 * 3600, alpha=0.9)
SHORT = Kind(name="many short", median=200, sigma=2.0, tail=0.06, least=2 * 3600, alpha=0.8)
MILD = Kind(name="mild tails", median=600, sigma=1.2, tail=0.2, least=3600, alpha=1.1)
BURSTS = Kind(name="bursts", median=300, sigma=1.8, tail=0.05, least=2 * 3600, alpha=0.9, bursts=True)
KINDS = (LONG, SHORT, MILD, BURSTS)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of the jobs that can be stopped, that may start over, and whose steps tell how long they take: 0 to 1."""

    stoppable: float = 1
    restartable: float = 1
    reports: float = 1


ALL = Shares()


def month(
    kind: Kind, cluster: Cluster, load: float, seed: int, days: float = 30, shares: Shares = ALL
) -> list[TraceJob]:
    """As many jobs as come to the load in so many days."""
    random = np.random.default_rng([seed, KINDS.index(kind), cluster.total])
    drawn = _jobs(random, kind, cluster, round(400 * days * cluster.nodes), longest=days * _DAY / 2)
    work = np.cumsum(drawn.seconds * drawn.gpus)
    count = int(np.searchsorted(work, load * cluster.total * days * _DAY))
    return flagged(_trace(random, kind, drawn, count, days * _DAY), shares, seed)


def flagged(jobs: Sequence[TraceJob], shares: Shares, seed: int) -> list[TraceJob]:
    """Return the jobs with flags drawn in these shares."""
    drawn = np.random.default_rng([seed, len(jobs)]).random((len(jobs), 3))
    flags = drawn < [shares.stoppable, shares.restartable, shares.reports]
    return [
        replace(job, stoppable=stoppable, restartable=RestartPermission(restartable), reports=reports)
        for job, (stoppable, restartable, reports) in zip(jobs, flags.tolist(), strict=True)
    ]


def crowd(kind: Kind, cluster: Cluster, load: float, seed: int, count: int) -> list[TraceJob]:
    """So many jobs, in as long as makes them the load."""
    random = np.random.default_rng([seed, KINDS.index(kind), cluster.total])
    drawn = _jobs(random, kind, cluster, count, longest=20 * _DAY)
    work = float((drawn.seconds * drawn.gpus).sum())
    return _trace(random, kind, drawn, count, work / (load * cluster.total))


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    user: NDArray[np.intp]
    seconds: NDArray[np.float64]
    gpus: NDArray[np.intp]


def _jobs(random: Generator, kind: Kind, cluster: Cluster, count: int, longest: float) -> _Drawn:
    users = 8 if cluster.nodes == 1 else 40
    rate = 1 / np.arange(1, users + 1) ** 1.2
    appetite = np.exp(random.normal(0, 1, users))
    wide = random.beta(0.6, 1.4, users)
    user = random.choice(users, count, p=random.permutation(rate / rate.sum()))
    seconds = kind.median * appetite[user] * np.exp(random.normal(0, kind.sigma, count))
    in_tail = random.random(count) < kind.tail * np.clip(appetite[user], 0.3, 3)
    seconds[in_tail] = (kind.least * (1 - random.random(count)) ** (-1 / kind.alpha))[in_tail]
    seconds = np.clip(seconds, 5, min(20 * _DAY, longest)).round()
    sizes, parts = _ONE_NODE if cluster.nodes == 1 else _SEVERAL
    several = random.random(count) < wide[user]
    gpus = np.where(several, np.minimum(random.choice(sizes, count, p=parts), cluster.total), 1)
    return _Drawn(user=user, seconds=seconds, gpus=gpus)


def _trace(random: Generator, kind: Kind, drawn: _Drawn, count: int, span: float) -> list[TraceJob]:
    user, seconds, gpus = drawn.user[:count], drawn.seconds[:count], drawn.gpus[:count]
    if kind.bursts:
        by_user = np.argsort(user, kind="stable")
        user, seconds, gpus = user[by_user], seconds[by_user], gpus[by_user]
        bursts = np.arange(count) // _BURST
        times = _arrivals(random, int(bursts[-1]) + 1, span)[random.permutation(bursts[-1] + 1)][bursts]
        times = times + random.exponential(_APART * _BURST / 2, count)
    else:
        times = _arrivals(random, count, span)
    in_order = np.argsort(times, kind="stable")
    columns = (times[in_order].round().tolist(), seconds[in_order].tolist(), gpus[in_order], user[in_order])
    return [
        TraceJob(
            line=line,
            submit_us=round(at) * SECOND,
            duration_us=round(lasts) * SECOND,
            gpus=int(wanted),
            user=f"user{whose:02}",
            project=f"project{whose % 6}",
        )
        for line, (at, lasts, wanted, whose) in enumerate(zip(*columns, strict=True), 2)
    ]


def _arrivals(random: Generator, count: int, span: float) -> NDArray[np.float64]:
    """Moments of a Poisson process that follows the hour and the day of the week, given how many there are."""
    found = np.zeros(0)
    while len(found) < count:
        at = random.random(4 * count + 100) * span
        by_hour = 1 + 0.7 * np.sin((at % _DAY / _DAY - 0.375) * 2 * np.pi)
        by_day = np.where(at // _DAY % 7 < 5, 1, 0.5)
        found = np.concatenate((found, at[random.random(len(at)) * 1.7 < by_hour * by_day]))
    return np.sort(found[:count])
