"""One round of one queue: the same code whatever the queue is."""

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.first_step import PROGRAM
from benchmarks.peers import programs
from benchmarks.peers.interface import Client, train
from benchmarks.peers.outcome import Measured

JOBS, DRAINED, STEPS = 20, 60, 2
#: Seconds after which a slow queue is asked no more; at least three jobs are.
LATENCY_S, DRAIN_S = 12.0, 12.0
#: Seconds for a job that is short, and for one with two ranks.
JOB_S, STEP_S = 30.0, 90.0


def measure(client: Client, folder: Path, into: Measured, *, jobs: int = JOBS, drained: int = DRAINED) -> None:
    """Add one round's values."""
    warm_up(client, folder)
    latency(client, folder, into, jobs)
    for number in range(STEPS):
        into.step_ms.append(_first_step(client, folder, number))
    into.drain_per_s.append(drain(client, folder, drained))


def warm_up(client: Client, folder: Path) -> None:
    """Run one job that does not count."""
    job = client.submit(programs.clock(folder / "first"))
    client.wait(job)
    until((folder / "first").exists)


def latency(client: Client, folder: Path, into: Measured, jobs: int) -> None:
    over = time.monotonic() + LATENCY_S
    for number in range(jobs):
        if number >= 3 and time.monotonic() > over:
            return
        path = folder / f"clock-{number}"
        before = time.time()
        job = client.submit(programs.clock(path))
        into.submit_ms.append((time.time() - before) * 1000)
        client.wait(job)
        until(path.exists)
        into.start_ms.append((programs.seconds(path) - before) * 1000)


def drain(client: Client, folder: Path, jobs: int) -> float:
    """Return jobs a second from the first submission to the first instruction of the last that ran in time."""
    paths = [folder / f"drain-{number}" for number in range(jobs)]
    before = time.time()
    for path in paths:
        client.submit(programs.clock(path))
        if time.time() > before + DRAIN_S:
            break
    while not all(path.exists() for path in paths) and time.time() < before + DRAIN_S:
        time.sleep(0.02)
    ended = [programs.seconds(path) for path in paths if path.exists()]
    if not ended:
        raise RuntimeError(f"none of {jobs} jobs ran in {DRAIN_S:.0f} s")
    return len(ended) / (max(ended) - before)


def _first_step(client: Client, folder: Path, number: int) -> float:
    script, moments = folder / "train.py", folder / f"moments-{number}"
    script.write_text(PROGRAM)
    before = time.time()
    job = train(client, script, moments)
    until(lambda: moments.exists() and moments.read_text().endswith("\n"), longest_s=STEP_S)
    client.wait(job)
    return (float(moments.read_text().split()[2]) - before) * 1000


def until(condition: Callable[[], object], longest_s: float | None = None) -> None:
    """Wait; raises RuntimeError when it takes too long."""
    longest_s = longest_s or JOB_S
    over = time.monotonic() + longest_s
    while not condition():
        if time.monotonic() > over:
            raise RuntimeError(f"a job has not run after {longest_s:g} s")
        time.sleep(0.01)
