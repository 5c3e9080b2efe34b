"""``python -m trainer.bench``: trains one model with each strategy at one batch and compares them.

One process, DataParallel, broadcast, parameter server, ring and DDP, on 1, 2, 4 and 8 devices or what the job or the
box has (without GPUs: ranks on the CPU). Start, download, warm-up and evaluation are left out; figures are medians of
segments that are timed between barriers. Writes ``strategies.csv``, ``.png``, ``.svg`` and ``.html``. It takes the
devices that it finds: on a shared box run it through the queue, as ``yard bench strategies`` does.

One process, DataParallel and DDP on PASCAL VOC, 20 epochs at 8 images a device, checkpoints in the times::

    python -m trainer.bench --model deeplabv3_resnet101 --data voc --epochs 20 --save

With ``--offline`` on made-up images of the same shape, for machines without a network.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import yaml

from torchyard.injob import layout
from torchyard.recipe import Recipe
from torchyard.recipe.base import RecipeOptions
from torchyard.recipe.data import Images
from trainer.bench import choice, plan, table
from trainer.bench.plan import BenchCase
from trainer.bench.report import ComparisonReport
from trainer.data import DATA
from trainer.exceptions import BenchError, DownloadError
from trainer.models import MODELS


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    description, _, manual = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m trainer.bench",
        description=description,
        epilog=manual,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--recipe", type=Path, help="what to train instead of the built-in choice")
    parser.add_argument("--model", help="the recipe's model, a name or YAML with options; goes with --data")
    parser.add_argument("--data", help="the recipe's data, a name or YAML with options")
    parser.add_argument("--offline", action="store_true", help="made-up images of the data's shape, no download")
    parser.add_argument("--strategies", nargs="+", help="names of strategies; with --model dp and ddp by default")
    parser.add_argument("--devices", type=int, nargs="+", help="device counts; default: 1, 2, 4, 8 as far as there are")
    batch = parser.add_mutually_exclusive_group()
    batch.add_argument("--batch", type=int, help="effective batch, the same in all cases; default 256")
    batch.add_argument("--per-device", type=int, help="samples of each device instead; with --model 8 by default")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, default=20, help="steps in a timed segment")
    length.add_argument("--epochs", type=int, help="so many whole epochs instead, each a segment")
    parser.add_argument("--repeats", type=int, default=5, help="timed segments of --steps; the median counts")
    parser.add_argument("--warm-up", type=int, default=10, help="steps before the first segment")
    parser.add_argument("--save", action="store_true", help="each segment ends with a checkpoint, within its time")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get(layout.OUTPUT_DIR, "bench")))
    return parser.parse_args(given)


def measure(case: BenchCase, options: argparse.Namespace) -> dict[str, Any]:
    """Run a case under torchrun; raises BenchError with the end of its output when it fails."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        given = {"recipe": case.recipe.model_dump(mode="json"), "epochs": options.epochs, "saving": options.save}
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
    """Return our environment without what belongs to a job around us, with as many devices as the case has."""
    ours = (layout.ATTEMPT_DIR, layout.RESTORE_DIR, "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    # One thread for each rank, so that a second rank and not a second thread makes the difference.
    environment |= {"OMP_NUM_THREADS": "1", layout.DEVICES: str(devices)}
    visible = environment.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(torch.cuda.device_count()))))
    return environment | {"CUDA_VISIBLE_DEVICES": ",".join(visible.split(",")[:devices])}


def measured(cases: Sequence[BenchCase], options: argparse.Namespace) -> Iterator[tuple[BenchCase, dict[str, Any]]]:
    for number, case in enumerate(cases, start=1):
        print(f"[{number}/{len(cases)}] {case.strategy} on {case.devices}", file=sys.stderr, flush=True)  # noqa: T201
        yield case, measure(case, options)


def fetch(recipe: Recipe) -> None:
    """Bring data and weights before anything is timed; raises DownloadError with the mends."""
    weighted = getattr(recipe.model, "weights", "none") != "none"
    if not isinstance(recipe.data, Images) and not weighted:
        return
    try:
        shape = DATA[recipe.data.name](recipe.data).shape
        if weighted:
            MODELS[recipe.model.name](recipe.model, shape)
    except DownloadError as error:
        raise DownloadError(
            f"{error}, here with --data '{{name: {recipe.data.name}, root: FOLDER, download: false}}'; or add "
            "--offline, which compares on made-up images of the same shape"
        ) from None


def facts(options: argparse.Namespace, chosen: choice.Comparison, gpus: int) -> list[tuple[str, str]]:
    """Describe how it was measured, in words."""
    where = torch.cuda.get_device_name() if gpus else f"CPU ranks with gloo, one thread each, {os.cpu_count()} cores"
    size = f"{chosen.batch} on each device" if chosen.per_device else f"{chosen.batch} on all devices together"
    segments = f"{options.repeats} segments of {options.steps} steps"
    timed = f"{options.epochs} whole epochs" if options.epochs else segments
    saving = "each segment ends with a checkpoint, which is in its time" if options.save else "no checkpoints"
    return [
        ("Devices", where),
        ("Samples of a step", size),
        ("Timed", f"{timed} after {options.warm_up} steps of warm-up; rates are medians, with the slowest and fastest"),
        ("Left out", "start of the processes, download, warm-up, evaluation"),
        ("Saving", saving),
        ("Model", _noun(chosen.recipe.model)),
        ("Data", _noun(chosen.recipe.data)),
        ("PyTorch", str(torch.__version__)),
        ("Date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _noun(options: RecipeOptions) -> str:
    return yaml.safe_dump(options.model_dump(mode="json", by_alias=True), default_flow_style=True, width=10**6).strip()


def main(given: Sequence[str] | None = None) -> None:
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    options = arguments(given)
    gpus = torch.cuda.device_count()
    chosen = choice.choose(options, gpus)
    numbers = options.devices or plan.counts(gpus or int(os.environ.get(layout.DEVICES) or 2))
    cases = plan.cases(chosen.recipe, chosen.strategies, numbers, chosen.batch, per_device=chosen.per_device)
    fetch(chosen.recipe)
    report = ComparisonReport(
        title=chosen.title,
        rows=table.rows(list(measured(cases, options))),
        facts=facts(options, chosen, gpus),
        model=chosen.model,
        note=chosen.note,
    )
    report.write(options.out)
    report.show()


if __name__ == "__main__":
    main()
