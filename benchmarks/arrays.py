"""``python -m benchmarks.arrays``: memory of the service before, during and after 100,000 jobs of arrays."""

import argparse
import time
from collections.abc import Iterator

import psutil

from benchmarks import results
from benchmarks.figure import Figure, summarise
from benchmarks.footprint import processes
from benchmarks.http import KeepAliveConnection
from benchmarks.stack import Stack, embedded

#: Trials of one sweep at most.
ARRAY = 10_000
GOAL_MB = 200
REST_S = 30
ENDED = ("succeeded", "failed", "cancelled")


def arrays(stack: Stack, jobs: int) -> Iterator[Figure]:
    """The service's proportional set size: idle, with all jobs in the queue, and once they have been cancelled."""
    connection = stack.connect()
    service = _service(stack)
    yield _figure("service, idle", service)
    began = time.time()
    groups = [_submit(connection, min(ARRAY, jobs - first)) for first in range(0, jobs, ARRAY)]
    yield Figure(name=f"{jobs:,} jobs in {len(groups)} arrays: submitted in", value=time.time() - began, unit="s")
    yield _figure("service, all of them in the queue", service)
    for group in groups:
        connection.json("POST", f"/api/v1/groups/{group}/cancel")
    for group in groups:
        while sum(_states(connection, group).get(state, 0) for state in ENDED) < min(ARRAY, jobs):
            time.sleep(0.5)
    time.sleep(REST_S)
    yield _figure("service, after they have ended", service, goal=True)


def _submit(connection: KeepAliveConnection, trials: int) -> str:
    spec = {
        "name": "array",
        "launcher": "none",
        "command": ["true", "{n}"],
        "resources": {"gpus": 1},
        "sweep": {"parameters": {"n": list(range(trials))}},
    }
    return str(connection.json("POST", "/api/v1/jobs", spec)["id"])


def _states(connection: KeepAliveConnection, group: str) -> dict[str, int]:
    return dict(connection.json("GET", f"/api/v1/groups/{group}")["states"])


def _service(stack: Stack) -> psutil.Process:
    (found,) = (each for each in processes(stack) if each.cmdline()[-2:] == ["-m", "service"])
    return found


def _figure(name: str, service: psutil.Process, *, goal: bool = False) -> Figure:
    value = service.memory_full_info().pss / 2**20
    if not goal:
        return Figure(name=name, value=value, unit="MB")
    return Figure(name=name, value=value, unit="MB", target=f"<= {GOAL_MB}", met=value <= GOAL_MB)


def main() -> None:
    """Run it and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays")
    parser.add_argument("--jobs", type=int, default=100_000)
    options = parser.parse_args()
    with embedded(slots=1) as stack:
        found = list(arrays(stack, options.jobs))
    results.report("arrays", [*summarise(found)])


if __name__ == "__main__":
    main()
