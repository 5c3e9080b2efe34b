"""``python -m trainer.bench``: trains one model with each strategy at one effective batch and compares them.

One process, DataParallel, broadcast, parameter server, ring and DDP, on 1, 2, 4 and 8 devices or what the box has
(without GPUs: 1 and 2 ranks on the CPU). Start, download and warm-up are left out; figures are medians of segments
that are timed between barriers. Writes ``strategies.csv``, ``.png`` and ``.svg``. It takes the devices that it finds:
on a shared box run it through the queue, as ``yard bench strategies`` does.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from torchyard.injob import layout
from torchyard.recipe import Recipe
from trainer.bench import plan, plot, table
from trainer.bench.plan import Case
from trainer.bench.published import PUBLISHED
from trainer.command import read_recipe
from trainer.exceptions import BenchError

#: On the CPU convolutions, which compute much for each byte of gradient; on GPUs what others publish.
SMALL = {
    "model": "digits_cnn",
    "data": {"name": "synthetic", "samples": 8192, "shape": [1, 16, 16]},
    "optim": "sgd",
}
LARGE = {
    "model": {"name": "resnet", "depth": 50},
    "data": {"name": "synthetic", "samples": 4096, "shape": [3, 224, 224], "classes": 1000},
    "optim": "sgd",
}


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer.bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recipe", type=Path, help="what to train instead of the built-in choice")
    parser.add_argument("--strategies", nargs="+", default=list(plan.STRATEGIES), help="names of strategies")
    parser.add_argument("--devices", type=int, nargs="+", help="device counts; default: 1, 2, 4, 8 as far as there are")
    parser.add_argument("--batch", type=int, default=256, help="effective batch, the same in all cases")
    parser.add_argument("--steps", type=int, default=20, help="steps in a timed segment")
    parser.add_argument("--repeats", type=int, default=5, help="timed segments; the median counts")
    parser.add_argument("--warm-up", type=int, default=10, help="steps before the first segment")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get(layout.OUTPUT_DIR, "bench")))
    return parser.parse_args(given)


def measure(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Runs a case under torchrun; raises BenchError with the end of its output when it fails."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        given = {"recipe": case.recipe.model_dump(mode="json")}
        given |= {"warm_up": options.warm_up, "steps": options.steps, "repeats": options.repeats}
        (folder / "case.json").write_text(json.dumps(given))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={case.processes}"]
        command += ["-m", "trainer.bench.rank", str(folder / "case.json"), str(folder / "out.json")]
        ended = subprocess.run(
            command, env=_environment(case.devices), check=False, capture_output=True, text=True, cwd=folder
        )
        if ended.returncode:
            raise BenchError(f"{case.strategy} on {case.devices} device(s) failed:\n{ended.stderr[-3000:]}")
        result: dict[str, Any] = json.loads((folder / "out.json").read_text())
        return result


def _environment(devices: int) -> dict[str, str]:
    """Ours without what belongs to a job around us; as many devices as the case has."""
    ours = (layout.ATTEMPT_DIR, layout.RESTORE_DIR, "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    # One thread for each rank, so that a second rank and not a second thread makes the difference.
    environment |= {"OMP_NUM_THREADS": "1", layout.DEVICES: str(devices)}
    visible = environment.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(torch.cuda.device_count()))))
    return environment | {"CUDA_VISIBLE_DEVICES": ",".join(visible.split(",")[:devices])}


def measured(cases: Sequence[Case], options: argparse.Namespace) -> Iterator[tuple[Case, dict[str, Any]]]:
    for number, case in enumerate(cases, start=1):
        print(f"[{number}/{len(cases)}] {case.strategy} on {case.devices}", file=sys.stderr, flush=True)  # noqa: T201
        yield case, measure(case, options)


def show(rows: Sequence[table.Row], title: str) -> None:
    """Our figures, then those that others have published."""
    ours = Table(
        "strategy", "devices", "samples/s", "range", "speed-up", "efficiency", "MiB/rank/step", "", title=title
    )
    for row in rows:
        spread = f"{row.slowest:,.0f} to {row.fastest:,.0f}"
        figures = f"{row.samples_per_second:,.0f}", spread, f"{row.speed_up:.2f}", f"{row.efficiency:.0%}"
        ours.add_row(row.strategy, str(row.devices), *figures, f"{row.bytes_per_rank / 2**20:.2f}", row.remark)
    theirs = Table("published", "hardware", "strategy", "devices", "speed-up", "efficiency", "")
    for each in PUBLISHED:
        gain = f"{each.speed_up:.2f}", f"{each.speed_up / each.devices:.0%}"
        theirs.add_row(each.what, each.hardware, each.strategy, str(each.devices), *gain, each.remark)
    console = Console(width=150)
    console.print(ours)
    console.print(theirs)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    gpus = torch.cuda.device_count()
    numbers = options.devices or plan.counts(gpus or 2)
    chosen = LARGE if gpus else SMALL
    recipe = read_recipe(options.recipe) if options.recipe else Recipe.model_validate(chosen)
    rows = table.rows(list(measured(plan.cases(recipe, options.strategies, numbers, options.batch), options)))
    where = torch.cuda.get_device_name() if gpus else "CPU, gloo, one thread per rank"
    title = f"{recipe.model.name} on {recipe.data.name}, effective batch {options.batch}, {where}"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "strategies.csv").write_text(table.as_csv(rows))
    plot.draw(rows, title, options.out)
    show(rows, title)


if __name__ == "__main__":
    main()
