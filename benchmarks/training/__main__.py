"""``python -m benchmarks.training``: the trainer's loop, its checkpoints and its start; medians of several runs."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.figure import Figure, summarise
from benchmarks.training import rows
from torchyard.injob import layout

ROOT = Path(__file__).parents[2]
BENCHMARKS = ("loop", "checkpoint", "start")


def launch(name: str, ranks: int) -> dict[str, Any]:
    """Runs ``benchmarks.training.<name>`` under torchrun inside an attempt folder; answers what rank 0 wrote."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        attempt = Path(folder)
        for each in (layout.METRICS, layout.MARKS, layout.CHECKPOINTS, layout.OUTPUT):
            (attempt / each).mkdir(parents=True)
        environment = os.environ | {
            layout.ATTEMPT_DIR: folder,
            layout.OUTPUT_DIR: str(attempt / layout.OUTPUT),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "BENCH_BEGAN_NS": str(time.time_ns()),
        }
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += ["-m", f"benchmarks.training.{name}", str(attempt / "out.json")]
        subprocess.run(command, env=environment, check=True, cwd=folder)
        result: dict[str, Any] = json.loads((attempt / "out.json").read_text())
        return result


def measured(name: str, ranks: int, runs: int) -> Iterator[Figure]:
    """Run a benchmark several times."""
    for _ in range(runs):
        yield from rows.figures(name, ranks, launch(name, ranks))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], choices=BENCHMARKS, help="nothing is written then")
    options = parser.parse_args()
    names = options.only or BENCHMARKS
    found = [row for name in names for ranks in (1, 2) for row in summarise(measured(name, ranks, options.runs))]
    results.report("trainer", found, whole=not options.only)


if __name__ == "__main__":
    main()
