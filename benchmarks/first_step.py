"""From a submission to the end of the first DDP step of two ranks: by hand, from the queue, and from a fork server.

By hand, executed, forked, and forked in an environment of the user's, in turn, since a machine is not equally fast for
minutes; and the first job of each of the two environments, which finds no fork server.
"""

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.http import KeepAliveConnection
from benchmarks.stack import Stack

PROGRAM = """
import sys, time
began = time.time()
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 64)).square().mean()
loss.backward()
optimizer.step()
loss.item()
ended = time.time()
if dist.get_rank() == 0:
    print("moments", began, ended, file=open(sys.argv[1], "w") if sys.argv[1:] else sys.stdout, flush=True)
dist.destroy_process_group()
"""
THREADS = {"OMP_NUM_THREADS": "1"}
#: Seconds until jobs of an environment start warm, at most.
SERVER_S = 120.0
#: Seconds to the first line of the script, and to the end of the first step.
Moments = tuple[float, float]


def first_step(stack: Stack, rounds: int = 3) -> Iterator[Figure]:
    """Seconds to a script's first line and to the end of its first DDP step."""
    connection = stack.connect()
    taken: dict[str, list[Moments]] = {"by hand": [], "cold": [], "warm": [], "warm, own environment": []}
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        script = Path(folder) / "train.py"
        environment = _environment(Path(folder) / "venv")
        firsts = [until_warm(stack, connection, Path(folder), python) for python in (sys.executable, environment)]
        for _ in range(rounds):
            taken["by hand"].append(_by_hand(script))
            for kind in ("cold", "warm"):
                taken[kind].append(_job(stack, connection, folder, sys.executable, warm=kind == "warm"))
            taken["warm, own environment"].append(_job(stack, connection, folder, environment, warm=True))
    taken["first of an environment"] = firsts
    line, step = ({kind: statistics.median(each[at] for each in all_) for kind, all_ in taken.items()} for at in (0, 1))
    targets = {"cold": 1.02, "first of an environment": 1.02, "warm": 0.10, "warm, own environment": 0.10}
    for kind, target in targets.items():
        yield Figure(
            name=f"submit to first DDP step, {kind}", value=step[kind] * 1000, unit="ms",
            target=f"<= {target:.2f} x", met=step[kind] <= target * step["by hand"],
            baseline=step["by hand"] * 1000, against="torchrun by hand",
        )  # fmt: skip
    for kind in ("cold", "warm"):
        yield Figure(
            name=f"submit to the script's first line, {kind}", value=line[kind] * 1000, unit="ms",
            baseline=line["by hand"] * 1000, against="torchrun by hand",
        )  # fmt: skip


def _environment(folder: Path) -> str:
    """Make an environment with an interpreter of its own, which finds the packages of this one; return it."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return str(folder / "bin" / "python")


def until_warm(stack: Stack, connection: KeepAliveConnection, folder: Path, python: str = sys.executable) -> Moments:
    """Run jobs in a folder until one has started warm; the script is put there. Return the moments of the first."""
    (folder / "train.py").write_text(PROGRAM)
    until = time.monotonic() + SERVER_S
    first: Moments | None = None
    while time.monotonic() < until:
        before = time.time()
        job = _submit(stack, connection, str(folder), python, warm=True)
        first = first or _moments_of(connection, job, before)
        if was_warm(connection, job):
            return first
        time.sleep(2)
    raise RuntimeError("no job started warm")


def _by_hand(script: Path) -> Moments:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    before = time.time()
    # Without a check: gloo aborts now and then when a process ends, after all that is measured.
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **THREADS})
    return _moments(done.stdout, before)


def _job(stack: Stack, connection: KeepAliveConnection, folder: str, python: str, *, warm: bool) -> Moments:
    before = time.time()
    job = _submit(stack, connection, folder, python, warm=warm)
    if was_warm(connection, job) is not warm:
        raise RuntimeError(f"job {job} started {'cold' if warm else 'warm'}")
    return _moments_of(connection, job, before)


def _moments_of(connection: KeepAliveConnection, job: str, before: float) -> Moments:
    _, _, log = connection.request("GET", f"/api/v1/jobs/{job}/logs")
    return _moments(log.decode(), before)


def _submit(stack: Stack, connection: KeepAliveConnection, folder: str, python: str, *, warm: bool) -> str:
    """Run the job to its end; return its id."""
    job = stack.submit(
        connection,
        command=["python", "train.py"],
        launcher="torchrun",
        live=folder,
        python=python,
        resources={"gpus": 2},
        env=THREADS,
        warm_start=warm,
    )
    ended = stack.finished(connection, job)
    if ended["state"] != "succeeded":
        raise RuntimeError(f"job {job}: {ended['error']}")
    return job


def was_warm(connection: KeepAliveConnection, job: str) -> bool:
    """Return whether a job of one attempt started warm."""
    _, _, answer = connection.request("GET", f"/api/v1/jobs/{job}/timing")
    (start,) = json.loads(answer)
    return bool(start["warm"])


def _moments(text: str, before: float) -> Moments:
    words = next(line for line in text.splitlines() if line.startswith("moments ")).split()
    return float(words[1]) - before, float(words[2]) - before
