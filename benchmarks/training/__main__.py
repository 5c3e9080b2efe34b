"""``python -m benchmarks.training``: the trainer's loop, its checkpoints and its start; medians of several runs."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], choices=BENCHMARKS)
    options = parser.parse_args()
    table = Table("figure", "median", "range", "target", "met")
    for name in options.only or BENCHMARKS:
        for ranks in (1, 2):
            for row in rows.summarise(name, ranks, [launch(name, ranks) for _ in range(options.runs)]):
                table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
