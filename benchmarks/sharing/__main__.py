"""``python -m benchmarks.sharing``: all policies on synthetic months, and what `fair` comes to against two of them.

`--crowd` simulates 80,000 jobs on 64 GPUs instead, with each policy, at load 0.9 or at every `--load`, and says how
long that takes. `--calm` simulates half months on 8 GPUs where nobody can be stopped: what it costs that nobody
starves. `--stoppable` simulates ten days on 8 GPUs where all, half, a fifth and none of the jobs can be stopped, beside
the oracle of the same world. `--easy` simulates such ten days where half of the jobs tell nothing and refuse to start
over, beside EASY backfill (`fifo-backfill`) that knows each job's length. `--users` simulates such ten days at more
shares and loads, and says how satisfied the users are that got the least GPU time, and the most. `--write FILE` writes
one trace, for `yard simulate`.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.sharing.generator import KINDS, LONG, MILD, Kind, Shares, crowd, month
from service.scheduler.explain.idle_time import IdleTime
from service.simulator import trace
from service.simulator.comparison import Setting, compare
from service.simulator.engine import simulate
from service.simulator.metrics import SimulationMetrics, measure, standings
from service.simulator.policies import PRESETS, title
from service.simulator.report import duration
from service.simulator.trace import SECOND, Cluster, TraceJob
from torchyard.spec.policy import Policy
from torchyard.spec.restarts import RestartPermission

CLUSTERS = (Cluster(nodes=1, gpus=8), Cluster(nodes=8, gpus=8))
LOADS = (0.7, 0.9, 1.0)
COST_US = 30 * SECOND
CROWD, CROWD_LIMIT_S = 80_000, 60
NEVER_S = 10**9
STOPPABLE = (1, 0.5, 0.2, 0)
#: Shares of stoppable jobs, and loads, at which satisfaction is looked at.
SATISFIED = ((1, 0.9), (0.9, 0.9), (0.75, 0.9), (0.5, 0.9), (0.2, 0.9), (0, 0.9), (0, 0.7), (0, 0.5), (0, 0.3))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One month."""

    cluster: Cluster
    kind: Kind
    load: float
    seed: int

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.cluster.total} GPUs, {self.kind.name}, load {self.load}, seed {self.seed}"


def main(argv: Sequence[str] | None = None) -> None:
    """Prints tables as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--gpus", type=int, choices=[c.total for c in CLUSTERS], action="append")
    parser.add_argument("--load", type=float, action="append")
    parser.add_argument("--crowd", action="store_true")
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--stoppable", action="store_true")
    parser.add_argument("--easy", action="store_true")
    parser.add_argument("--users", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(argv)
    if options.write:
        with options.write.open("w") as file:
            trace.write(month(LONG, CLUSTERS[1], 0.9, 1), file)
    elif options.crowd:
        for load in options.load or [0.9]:
            _crowd(load)
    elif options.stoppable:
        _stoppable(options.seeds, options.processes)
    elif options.easy:
        _easy(options.seeds, options.processes)
    elif options.users:
        _users(options.seeds, options.processes)
    elif options.calm:
        _half_months()
    else:
        clusters = [cluster for cluster in CLUSTERS if not options.gpus or cluster.total in options.gpus]
        _months(clusters, options.load or LOADS, options.seeds, options.processes)


def _months(clusters: Sequence[Cluster], loads: Sequence[float], seeds: int, processes: int) -> None:
    cases = [
        Case(cluster=c, kind=k, load=x, seed=s) for c in clusters for k in KINDS for x in loads for s in range(seeds)
    ]
    with ProcessPoolExecutor(processes) as pool:
        found = dict(zip(cases, pool.map(_figures, cases), strict=True))
    for cluster in clusters:
        print(f"\n### {cluster.total} GPUs\n")
        _table({case: figures for case, figures in found.items() if case.cluster == cluster})


def _figures(case: Case) -> dict[str, SimulationMetrics]:
    jobs = month(case.kind, case.cluster, case.load, case.seed)
    return {name: _metrics(jobs, case.cluster, policy) for name, policy in PRESETS.items()}


def _metrics(jobs: Sequence[TraceJob], cluster: Cluster, policy: Policy) -> SimulationMetrics:
    idle = IdleTime()
    done = simulate(jobs, cluster, policy, COST_US, idle=idle)
    return measure(done, cluster, standings(done, cluster), idle)


def _table(found: dict[Case, dict[str, SimulationMetrics]]) -> None:
    print("| policy | mean JCT / srtf's | p99 JCT / las's | Jain | stops a month | GPU time lost |")
    print("|---|---|---|---|---|---|")
    for name, policy in PRESETS.items():
        means = [figures[name].mean_jct / figures["srtf"].mean_jct for figures in found.values()]
        tails = [figures[name].p99_jct / figures["las"].p99_jct for figures in found.values()]
        jains = [figures[name].jain for figures in found.values()]
        lost = [_lost(case, figures[name]) for case, figures in found.items()]
        stops = statistics.mean(figures[name].preemptions for figures in found.values())
        print(
            f"| {title(name, policy)} | {_spread(means, max)} | {_spread(tails, max)} | {_spread(jains, min, 3)} "
            f"| {stops:,.0f} | {100 * statistics.mean(lost):.1f} % |"
        )
    for line in _worst(found):
        print(line)


def _spread(values: Sequence[float], worst: Callable[[Sequence[float]], float], digits: int = 2) -> str:
    return f"{statistics.mean(values):.{digits}f} ({worst(values):.{digits}f})"


def _lost(case: Case, metrics: SimulationMetrics) -> float:
    return metrics.gpu_seconds_lost / (metrics.utilization * metrics.makespan * case.cluster.total)


def _worst(found: dict[Case, dict[str, SimulationMetrics]]) -> Iterator[str]:
    mean = max(found, key=lambda case: found[case]["fair"].mean_jct / found[case]["srtf"].mean_jct)
    tail = max(found, key=lambda case: found[case]["fair"].p99_jct / found[case]["las"].p99_jct)
    jain = min(found, key=lambda case: found[case]["fair"].jain)
    yield f"\nfair is worst in the mean on: {mean.name}; in the tail on: {tail.name}; in Jain's index on: {jain.name}."


def _crowd(load: float) -> None:
    cluster = CLUSTERS[1]
    jobs = crowd(MILD, cluster, load, 1, CROWD)
    print(f"\n{len(jobs):,} jobs in {duration(trace.span_us(jobs) / SECOND)}, {cluster.total} GPUs, load {load}\n")
    print("| policy | seconds | of it CPU | target | met |\n|---|---|---|---|---|")
    for name, policy in PRESETS.items():
        wall, cpu = time.perf_counter(), _cpu_of_children()
        compare({name: policy}, Setting(jobs=jobs, cluster=cluster))
        wall, cpu = time.perf_counter() - wall, _cpu_of_children() - cpu
        met = "yes" if wall < CROWD_LIMIT_S else "NO"
        print(f"| {title(name, policy)} | {wall:.0f} | {cpu:.0f} | < {CROWD_LIMIT_S} | {met} |", flush=True)


def _half_months() -> None:
    calm: dict[str, Any] = {"preemption": False, "time_slice": None}
    policies = {
        "fifo-backfill": PRESETS["fifo-backfill"],
        "fair": Policy(**calm),
        "fair, however long somebody waits": Policy(**calm, longest_wait=NEVER_S),
    }
    print("| half month | policy | mean JCT | p99 | GPUs held |\n|---|---|---|---|---|")
    for kind in KINDS:
        jobs = month(kind, CLUSTERS[0], 0.9, 0, days=15)
        for name, policy in policies.items():
            found = _metrics(jobs, CLUSTERS[0], policy)
            mean, p99 = duration(found.mean_jct), duration(found.p99_jct)
            print(f"| {kind.name} | {name} | {mean} | {p99} | {100 * found.utilization:.0f} % |", flush=True)


def _stoppable(seeds: int, processes: int) -> None:
    cases = [(share, kind, seed) for share in STOPPABLE for kind in KINDS for seed in range(seeds)]
    with ProcessPoolExecutor(processes) as pool:
        found = list(zip(cases, pool.map(_of_share, cases), strict=True))
    print("| stoppable | mean JCT / srtf's | p99 / las's | srtf's p99 / las's | Jain, srtf's | ", end="")
    print("avoidable | kept | restarts |")
    print("|---|---|---|---|---|---|---|---|")
    for share in STOPPABLE:
        some = [figures for (of, _, _), figures in found if of == share]
        cells = [
            _spread([each["fair"].mean_jct / each["srtf"].mean_jct for each in some], max),
            _spread([each["fair"].p99_jct / each["las"].p99_jct for each in some], max),
            f"{statistics.mean(each['srtf'].p99_jct / each['las'].p99_jct for each in some):.2f}",
            ", ".join(f"{statistics.mean(each[name].jain for each in some):.3f}" for name in ("fair", "srtf")),
            f"{100 * max(each['fair'].avoidable_idle for each in some):.1f} %",
            ", ".join(
                f"{100 * statistics.mean(each[name].kept_idle for each in some):.1f} %" for name in ("fair", "srtf")
            ),
            f"{statistics.mean(each['fair'].restarts for each in some):,.0f}",
        ]
        print(f"| {100 * share:.0f} % | {' | '.join(cells)} |")
    print("\n| target | stoppable | median | worst | months that meet it |\n|---|---|---|---|---|")
    for share in STOPPABLE:
        for target in _targets(share, [figures for (of, _, _), figures in found if of == share]):
            print(target.line(f"{100 * share:.0f} %"))
    print(_rises(dict(found)).line("more, of fewer"))
    for (share, kind, seed), each in found:
        ratio = each["fair"].mean_jct / each["srtf"].mean_jct
        print(f"{100 * share:.0f} %, {kind.name}, seed {seed}: {duration(each['fair'].mean_jct)}, {ratio:.2f}")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A figure of each month, and its bound."""

    name: str
    bound: float
    values: Sequence[float]
    #: The worst value of several; the bound holds on its other side.
    worst: Callable[[Sequence[float]], float] = max

    def line(self, share: str) -> str:
        """Return the line of the table."""
        met = sum(self.worst((value, self.bound)) == self.bound for value in self.values)
        cells = (f"{statistics.median(self.values):.3f}", f"{self.worst(self.values):.3f}")
        return f"| {self.name} {self.bound} | {share} | {' | '.join(cells)} | {met} of {len(self.values)} |"


def _targets(share: float, some: Sequence[dict[str, SimulationMetrics]]) -> Iterator[Target]:
    means = [each["fair"].mean_jct / each["srtf"].mean_jct for each in some]
    yield Target(name="mean JCT / srtf's, at most", bound=1.15 if share else 1.2, values=means)
    tails = [each["fair"].p99_jct / each["las"].p99_jct for each in some]
    yield Target(name="p99 / las's, at most", bound=1.3, values=tails)
    yield Target(name="avoidable idle, at most", bound=0.02, values=[each["fair"].avoidable_idle for each in some])
    yield Target(name="Jain, at least", bound=0.9, values=[each["fair"].jain for each in some], worst=min)


def _rises(found: dict[tuple[float, Kind, int], dict[str, SimulationMetrics]]) -> Target:
    """Return by how much the mean is longer, in each month, where more can be stopped than in a better one."""
    rises = []
    for kind, seed in dict.fromkeys((kind, seed) for _, kind, seed in found):
        means = [found[share, kind, seed]["fair"].mean_jct for share in STOPPABLE]
        rises.append(max(more / fewer - 1 for more, fewer in combinations(means, 2)))
    return Target(name="mean longer, as a part, at most", bound=0.05, values=rises)


def _of_share(case: tuple[float, Kind, int]) -> dict[str, SimulationMetrics]:
    share, kind, seed = case
    jobs = month(kind, CLUSTERS[0], 0.9, seed, days=10, shares=Shares(stoppable=share))
    return {name: _metrics(jobs, CLUSTERS[0], PRESETS[name]) for name in ("fair", "srtf", "las")}


def _easy(seeds: int, processes: int) -> None:
    cases = [(share, kind, seed) for share in STOPPABLE[1:] for kind in KINDS for seed in range(seeds)]
    with ProcessPoolExecutor(processes) as pool:
        found = dict(zip(cases, pool.map(_beside_easy, cases), strict=True))
    print(
        f"| stoppable | mean JCT / EASY's | {' | '.join(kind.name for kind in KINDS)} | median, months of at most 1 |"
    )
    print(f"|---|---|{'---|' * len(KINDS)}---|")
    for share in STOPPABLE[1:]:
        of_kinds = [[found[share, kind, seed] for seed in range(seeds)] for kind in KINDS]
        every = [ratio for ratios in of_kinds for ratio in ratios]
        cells = [f"{statistics.geometric_mean(ratios):.2f}" for ratios in of_kinds]
        met = sum(ratio <= 1 for ratio in every)
        cells = [
            f"{100 * share:.0f} %", f"{statistics.geometric_mean(every):.2f} ({max(every):.2f})", *cells,
            f"{statistics.median(every):.2f}, {met} of {len(every)}",
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |")


def _beside_easy(case: tuple[float, Kind, int]) -> float:
    share, kind, seed = case
    drawn = month(kind, CLUSTERS[0], 0.9, seed, days=10, shares=Shares(stoppable=share, reports=0.5))
    jobs = [replace(job, restartable=RestartPermission(job.reports), estimate_us=job.duration_us) for job in drawn]
    fair, easy = (_metrics(jobs, CLUSTERS[0], PRESETS[name]).mean_jct for name in ("fair", "fifo-backfill"))
    return fair / easy


def _users(seeds: int, processes: int) -> None:
    cases = [(world, kind, seed) for world in SATISFIED for kind in KINDS for seed in range(seeds)]
    with ProcessPoolExecutor(processes) as pool:
        found = list(zip(cases, pool.map(_satisfaction, cases), strict=True))
    print(
        "| stoppable | load | Jain: fair, srtf | the worst month | small users: fair, srtf | large users: fair, srtf |"
    )
    print("|---|---|---|---|---|---|")
    for share, load in SATISFIED:
        pairs = list(zip(*(each for (world, _, _), each in found if world == (share, load)), strict=True))
        jains, small, large = zip(*(zip(*months, strict=True) for months in pairs), strict=True)
        cells = (
            ", ".join(f"{statistics.mean(values):.3f}" for values in jains),
            ", ".join(f"{min(values):.3f}" for values in jains),
            ", ".join(f"{statistics.mean(values):.2f}" for values in small),
            ", ".join(f"{statistics.mean(values):.2f}" for values in large),
        )
        print(f"| {100 * share:.0f} % | {load} | {' | '.join(cells)} |")


def _satisfaction(case: tuple[tuple[float, float], Kind, int]) -> list[tuple[float, float, float]]:
    """Return, for `fair` and `srtf`, Jain's index and the mean satisfaction of those who got less and of the rest."""
    (share, load), kind, seed = case
    jobs = month(kind, CLUSTERS[0], load, seed, days=10, shares=Shares(stoppable=share))
    found = []
    for name in ("fair", "srtf"):
        done = simulate(jobs, CLUSTERS[0], PRESETS[name], COST_US)
        stood = sorted(standings(done, CLUSTERS[0]), key=lambda each: each.got)
        half = len(stood) // 2
        less, more = (statistics.mean(each.satisfaction for each in some) for some in (stood[:half], stood[half:]))
        found.append((measure(done, CLUSTERS[0], stood, IdleTime()).jain, less, more))
    return found


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
