"""What the stack takes while nothing runs, how soon it accepts jobs, and how long commands of `yard` take."""

import itertools
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.figure import Figure
from benchmarks.stack import Stack

YARD = (sys.executable, "-m", "torchyard.cli.main")
#: Jobs without work that say when they began; each takes all slots, so that they run one after the other.
CLOCK = ("python", "-I", "-S", "-c", "import time; print(time.time_ns())")
REST_S = 20


def idle(stack: Stack) -> Iterator[Figure]:
    """Memory and CPU time of the stack's processes while nothing runs, without servers for a warm start."""
    found = processes(stack)
    shared = sum(_kilobytes(each.pid, "Pss") for each in found) / 1024
    before = sum(sum(each.cpu_times()[:2]) for each in found)
    time.sleep(REST_S)
    busy = (sum(sum(each.cpu_times()[:2]) for each in found) - before) / REST_S * 100
    yield Figure(name="idle stack: memory", value=shared, unit="MB", target="< 200", met=shared < 200)
    yield Figure(name="idle stack: CPU time", value=busy, unit="% of a core", target="< 1", met=busy < 1)


def shim(stack: Stack) -> Iterator[Figure]:
    """Memory that the shim of a running job has to itself."""
    connection = stack.connect()
    job = stack.submit(connection, command=["sleep", "600"])
    while connection.json("GET", f"/api/v1/jobs/{job}?wait=5")["state"] != "running":
        pass
    (shim,) = (each for each in psutil.process_iter() if _has_the_job(each, stack))
    private = (_kilobytes(shim.pid, "Private_Clean") + _kilobytes(shim.pid, "Private_Dirty")) / 1024
    connection.json("POST", f"/api/v1/jobs/{job}/cancel")
    stack.finished(connection, job)
    yield Figure(name="shim: private memory", value=private, unit="MB", target="< 12", met=private < 12)


def handover(stack: Stack, jobs: int = 40) -> Iterator[Figure]:
    """From one job's only instruction to that of the next with a full queue, each on all slots."""
    connection = stack.connect()
    names = [stack.submit(connection, command=list(CLOCK), resources={"gpus": 2}) for _ in range(jobs)]
    starts = []
    for job in names:
        stack.finished(connection, job)
        _, _, log = connection.request("GET", f"/api/v1/jobs/{job}/logs")
        starts.append(int(log.split()[0]) / 1e6)
    starts.sort()
    gap = statistics.median(after - before for before, after in itertools.pairwise(starts))
    yield Figure(name="from one job to the next, full queue", value=gap, unit="ms", target="<= 60", met=gap <= 60)


def start(stack: Stack) -> Iterator[Figure]:
    """`yard up` in an empty home until a job is accepted."""
    stack.submit(stack.connect(), command=["true"])
    took = time.time() - stack.began
    yield Figure(name="yard up: to the first job accepted", value=took, unit="s", target="< 2", met=took < 2)


def commands(stack: Stack, runs: int = 5) -> Iterator[Figure]:
    """Commands of `yard` from their start to their end."""
    connection = stack.connect()
    job = stack.submit(connection, command=["true"])
    stack.finished(connection, job)
    python = _median(runs, [sys.executable, "-c", "pass"], stack)
    submit = ("run", "--detach", "--live", "--launcher", "none", "--", "true")
    for name, words in (("--help", ("--help",)), ("ls", ("ls",)), ("show", ("show", job)), ("run --detach", submit)):
        took = _median(runs, [*YARD, *words], stack)
        target = "" if words == submit else "< 150"
        yield Figure(
            name=f"yard {name}", value=took, unit="ms", target=target, met=took < 150,
            baseline=python, against="python -c pass",
        )  # fmt: skip


def _median(runs: int, command: Sequence[str], stack: Stack) -> float:
    environment = {**os.environ, "TORCHYARD_HOME": str(stack.home)}
    times = []
    for _ in range(runs):
        begin = time.time()
        subprocess.run(command, env=environment, cwd=stack.home, check=True, stdout=subprocess.DEVNULL)
        times.append((time.time() - begin) * 1e3)
    return statistics.median(times)


def processes(stack: Stack) -> list[psutil.Process]:
    """`yard up` of this stack and all below it, without servers for a warm start, whose memory has a budget."""
    found = [each for each in psutil.Process().children(recursive=True) if _is_of(each, stack)]
    return [each for each in found if not any("forkserver" in word for word in each.cmdline())]


def _is_of(process: psutil.Process, stack: Stack) -> bool:
    return process.environ().get("TORCHYARD_HOME") == str(stack.home)


def _has_the_job(process: psutil.Process, stack: Stack) -> bool:
    """Whether the process is the parent of a job that runs below this stack's home."""
    try:
        children = process.children()
        return any(each.name() == "sleep" and each.cwd().startswith(str(stack.home)) for each in children)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return False


def _kilobytes(pid: int, name: str) -> int:
    """Return a row of what the kernel says of a process's memory."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


ALL = (idle, shim, handover, start, commands)
