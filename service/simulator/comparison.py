"""Comparison of policies over one trace, each simulated in its own process, with a progress bar on a terminal."""

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import SynchronizedArray

from rich.progress import Progress

from service.scheduler.explain.idle_time import IdleTime
from service.simulator.engine import simulate
from service.simulator.figures import Course, course
from service.simulator.metrics import measure, standings
from service.simulator.quotas import Quotas
from service.simulator.report import PolicyResult
from service.simulator.reservations import TraceReservation
from service.simulator.trace import SECOND, Cluster, TraceJob
from torchyard.spec.policy import Policy

#: Seconds between two updates of the progress bars.
_LOOK_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Trace, cluster, quotas and reservations that all policies are simulated with."""

    jobs: Sequence[TraceJob]
    cluster: Cluster
    quotas: Quotas = field(default_factory=Quotas)
    reservations: Sequence[TraceReservation] = ()
    #: Whether the course of each simulation is to be plotted too.
    drawn: bool = False

    def run(self, title: str, policy: Policy, tell: Callable[[int], None]) -> tuple[PolicyResult, Course | None]:
        """Simulate one policy and return its figures; `tell` is called with the number of jobs ended so far."""
        idle = IdleTime()
        cost_us = policy.preemption_cost * SECOND
        done = simulate(self.jobs, self.cluster, policy, cost_us, self.quotas, self.reservations, tell, idle)
        weights = self.quotas.weights({job.user for job in self.jobs})
        stood = standings(done, self.cluster, weights)
        result = PolicyResult(title=title, metrics=measure(done, self.cluster, stood, idle), standings=stood)
        return result, course(done, self.cluster) if self.drawn else None


class _Worker:
    """Globals of a process that simulates, set when it starts."""

    setting: Setting
    ended: "SynchronizedArray[int]"


def compare(policies: Mapping[str, Policy], setting: Setting) -> list[tuple[PolicyResult, Course | None]]:
    """Simulate all policies, by title, and return their results in the same order."""
    ended = multiprocessing.Array("q", len(policies))
    processes = min(len(policies), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(processes, initializer=_begin, initargs=(setting, ended)) as pool:
        # The last first: they are the ones that take long.
        asked = [(at, *each) for at, each in enumerate(policies.items())][::-1]
        futures = [pool.submit(_run, *each) for each in asked]
        with _bars() as bars:
            tasks = [bars.add_task(title, total=len(setting.jobs)) for title in policies]
            while wait(futures, timeout=_LOOK_S).not_done:
                for task, so_far in zip(tasks, ended[:], strict=True):
                    bars.update(task, completed=so_far)
        return [future.result() for future in futures[::-1]]


def _begin(setting: Setting, ended: "SynchronizedArray[int]") -> None:
    # Ctrl-C must not print a traceback of each process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Nothing here makes cycles, and searching for them takes a tenth of the time.
    gc.disable()
    _Worker.setting, _Worker.ended = setting, ended


def _run(at: int, title: str, policy: Policy) -> tuple[PolicyResult, Course | None]:
    def tell(ended: int) -> None:
        _Worker.ended[at] = ended

    return _Worker.setting.run(title, policy, tell)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
