"""From a submission to the end of a script's imports: ``python -m benchmarks.learning --python ENVIRONMENT``.

By hand, executed, forked from a server that has PyTorch alone, and forked from one that has learnt what the script
imports. The environment needs torch and the packages that are named.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.first_step import SERVER_S, THREADS, was_warm
from benchmarks.stack import Stack, embedded

#: Prints whether the last of the modules was there from the beginning, and when all were imported.
PROGRAM = """
import sys, time
learnt = {names!r}[-1] in sys.modules
import torch
{imports}
print("imported", int(learnt), time.time(), flush=True)
"""
KINDS = ("by hand", "executed", "before learning", "after learning")


def measure(stack: Stack, python: Path, names: list[str]) -> dict[str, float]:
    """Seconds of each kind, once, in an environment that has taught nothing yet."""
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        env = {**THREADS, "ROUND": Path(folder).name}
        imports = "\n".join(f"import {name}" for name in names)
        (Path(folder) / "train.py").write_text(PROGRAM.format(names=names, imports=imports))
        (Path(folder) / "plain.py").write_text("import torch")
        job = _Job(stack, folder, python, env)
        taken = {"by hand": _by_hand(python, Path(folder) / "train.py")}
        until = time.monotonic() + SERVER_S
        while not job.run("plain.py"):
            _pause(until, "no job started warm")
        taken["before learning"] = job.imported(learnt=False)
        while (after := job.maybe_imported(learnt=True)) is None:
            _pause(until, "nothing was learnt")
        taken["after learning"] = after
        taken["executed"] = job.imported(learnt=False, warm_start=False)
        return taken


class _Job:
    """A script that is submitted as a job again and again."""

    def __init__(self, stack: Stack, folder: str, python: Path, env: dict[str, str]) -> None:
        self._stack = stack
        self._spec = {"launcher": "python", "live": folder, "python": str(python), "env": env}
        self.log = ""

    def run(self, script: str, *, warm_start: bool = True) -> bool:
        """Run a script to its end; return whether it started warm."""
        connection = self._stack.connect()  # anew: the service closes one that is idle
        spec = {**self._spec, "command": ["python", script], "warm_start": warm_start}
        job = self._stack.submit(connection, **spec)
        ended = self._stack.finished(connection, job)
        if ended["state"] != "succeeded":
            raise RuntimeError(f"job {job}: {ended['error']}")
        _, _, log = connection.request("GET", f"/api/v1/jobs/{job}/logs")
        self.log = log.decode()
        return was_warm(connection, job)

    def maybe_imported(self, *, learnt: bool, warm_start: bool = True) -> float | None:
        """Seconds to the end of the imports; None if the job found them otherwise than was asked for."""
        before = time.time()
        if self.run("train.py", warm_start=warm_start) is not warm_start:
            return None
        found, at = _told(self.log)
        return at - before if found is learnt else None

    def imported(self, *, learnt: bool, warm_start: bool = True) -> float:
        """The same; raises RuntimeError instead."""
        seconds = self.maybe_imported(learnt=learnt, warm_start=warm_start)
        if seconds is None:
            raise RuntimeError(f"a job started otherwise than it should: {self.log}")
        return seconds


def _told(text: str) -> tuple[bool, float]:
    words = next(line for line in text.splitlines() if line.startswith("imported ")).split()
    return words[1] == "1", float(words[2])


def _by_hand(python: Path, script: Path) -> float:
    before = time.time()
    done = subprocess.run([python, script], capture_output=True, text=True, check=True, env={**os.environ, **THREADS})
    return _told(done.stdout)[1] - before


def _pause(until: float, problem: str) -> None:
    if time.monotonic() > until:
        raise RuntimeError(problem)
    time.sleep(2)


def main() -> None:
    """Prints the medians of a few rounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning")
    parser.add_argument("--python", type=Path, required=True, help="interpreter of the environment")
    parser.add_argument("--modules", nargs="+", default=["transformers", "transformers.trainer"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with embedded() as stack:
        rounds = [measure(stack, options.python, options.modules) for _ in range(options.rounds)]
    table = Table("start", "median", "of the rounds", "against by hand")
    by_hand = statistics.median(each["by hand"] for each in rounds)
    for kind in KINDS:
        taken = sorted(each[kind] for each in rounds)
        shown = [f"{seconds * 1000:,.0f}" for seconds in taken]
        table.add_row(
            kind,
            f"{statistics.median(taken) * 1000:,.0f} ms",
            " ".join(shown),
            f"{statistics.median(taken) / by_hand:.2f} x",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
