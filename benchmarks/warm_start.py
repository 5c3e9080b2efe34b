"""`python -m benchmarks.warm_start`: from the submission to the first optimizer step of two ranks, warm, cold, by hand.

In turn on one machine, so that what else goes on there meets all three alike. Two embedded stacks run side by side, one
with warm starts; by hand is ``torchrun --standalone --nproc-per-node 2`` on the same script.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.stack import Stack, embedded

SCRIPT = """
import sys, time
line = time.time_ns()
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 32)), torch.randint(0, 4, (16,)))
loss.backward()
optimizer.step()
step = time.time_ns()
if dist.get_rank() == 0:
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(f"{line} {step}")
    os.rename(sys.argv[1] + ".new", sys.argv[1])
dist.destroy_process_group()
"""
#: What the worker's log says when a fork server has loaded.
LOADED = "start warm from now on"


def _submitted(stack: Stack, script: Path, told: Path) -> None:
    connection = stack.connect()
    spec = {"launcher": "torchrun", "live": str(script.parent), "resources": {"gpus": 2}}
    job = stack.submit(connection, **spec, command=["python", script.name, str(told)])
    shown = stack.finished(connection, job)
    if shown["state"] != "succeeded":
        raise RuntimeError(f"a job has {shown['state']}")


def _by_hand(script: Path, told: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # It may fail at its exit, long after the step, where gloo's threads drop their tensors (pytorch/pytorch#190489).
    subprocess.run([*torchrun, str(script), str(told)], check=False, capture_output=True, env=environment)


def _measured(start: Callable[[Path], None], folder: Path) -> tuple[float, float]:
    """Milliseconds until the script's first line and until its first optimizer step."""
    told = folder / "told"
    told.unlink(missing_ok=True)
    before = time.time_ns()
    start(told)
    line, step = map(int, told.read_text().split())
    return (line - before) / 1e6, (step - before) / 1e6


def _wait_until_loaded(stack: Stack) -> None:
    while not any(LOADED in path.read_text(errors="replace") for path in (stack.home / "logs").iterdir()):
        time.sleep(0.2)


def main() -> None:
    """Runs the three in turn and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm_start")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as place,
        embedded(TORCHYARD_WARM_START="1") as warm,
        embedded(TORCHYARD_WARM_START="0") as cold,
    ):
        folder = Path(place)
        script = folder / "train.py"
        script.write_text(SCRIPT)
        _submitted(warm, script, folder / "told")
        _wait_until_loaded(warm)
        ways: dict[str, Callable[[Path], None]] = {
            "torchrun by hand": lambda told: _by_hand(script, told),
            "submitted, cold": lambda told: _submitted(cold, script, told),
            "submitted, warm": lambda told: _submitted(warm, script, told),
        }
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, start in ways.items():
                results[name].append(_measured(start, folder))
    _print(results)


def _print(results: dict[str, list[tuple[float, float]]]) -> None:
    table = Table("start", "first line", "first step", "range", "against torchrun by hand")
    by_hand = statistics.median(step for _, step in results["torchrun by hand"])
    for name, measured in results.items():
        line, step = (statistics.median(each) for each in zip(*measured, strict=True))
        steps = [each for _, each in measured]
        spread = f"{min(steps):,.0f} to {max(steps):,.0f} ms"
        table.add_row(name, f"{line:,.0f} ms", f"{step:,.0f} ms", spread, f"{step / by_hand:.2f} x")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
