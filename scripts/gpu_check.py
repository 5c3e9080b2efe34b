"""Checks everything of ours that touches a GPU, on a bare machine: ``python scripts/gpu_check.py``.

Each step runs in a process of its own and with a time limit, so none can spoil another. Where there is no GPU the
CPU half of the steps runs, and the others say so. ``--wheels FOLDER`` takes packages that this interpreter lacks from
there, without a network; ``--page`` writes the table into docs/gpu.md, ``--results FILE`` keeps it as JSON.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import generated  # noqa: E402
from scripts.gpu_stack import STACK_STEPS  # noqa: E402
from scripts.gpu_steps import STEPS, Step  # noqa: E402

ALL: Final = (*STEPS, *STACK_STEPS)
PAGE: Final = ROOT / "docs" / "gpu.md"
#: Packages that the steps import, by module.
NEEDED: Final = {
    "httpx": "httpx",
    "psutil": "psutil",
    "pydantic": "pydantic",
    "pydantic_settings": "pydantic-settings",
    "pynvml": "nvidia-ml-py",
    "numpy": "numpy",
    "packaging": "packaging",
    "yaml": "pyyaml",
    "filelock": "filelock",
}
RAN, RAN_ON_CPU, NOT_HERE, FAILED, TIMED_OUT = "ran", "ran on the CPU", "not here: no GPU", "failed", "timed out"
NOT_INSTALLED = "not here: needs torchyard[box]"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a step."""

    name: str
    state: str
    seconds: float
    note: str


def has_gpu() -> bool:
    """Return whether PyTorch sees a GPU, asked in a process of its own."""
    code = "import torch; raise SystemExit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def run(step: Step, gpu: bool, environment: dict[str, str]) -> Outcome:
    """Run a step in a process of its own."""
    if not gpu and not step.on_cpu:
        return Outcome(name=step.name, state=NOT_HERE, seconds=0.0, note="")
    if step.product and importlib.util.find_spec("celery") is None:
        return Outcome(name=step.name, state=NOT_INSTALLED, seconds=0.0, note="")
    began = time.monotonic()
    command = [sys.executable, __file__, "--step", step.name, *(["--gpu"] if gpu else [])]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )
    try:
        text, _ = process.communicate(timeout=step.limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        text, _ = process.communicate()
        return _outcome(step, TIMED_OUT, began, text)
    return _outcome(step, FAILED if process.returncode else RAN if gpu else RAN_ON_CPU, began, text)


def _outcome(step: Step, state: str, began: float, text: str) -> Outcome:
    lines = [line for line in text.splitlines() if line.strip()]
    note = (lines or [""])[-1][:200]
    if state in {FAILED, TIMED_OUT}:
        sys.stderr.write(f"--- {step.name}\n{text[-4000:]}\n")
    return Outcome(name=step.name, state=state, seconds=round(time.monotonic() - began, 1), note=note)


def add_wheels(wheels: Path | None, target: Path) -> dict[str, str]:
    """Install what this interpreter lacks from a folder of wheels; return the environment of the steps."""
    path = [str(ROOT)]
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing and wheels is not None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(wheels)]
        subprocess.run([*pip, "--target", str(target), *missing], check=True)
        path.append(str(target))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def machine() -> str:
    """The card and the versions, in a line."""
    code = (
        "import torch; print(torch.__version__, torch.version.cuda or 'without CUDA', "
        "torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'no GPU', sep=' · ')"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    return f"Python {sys.version.split()[0]} · PyTorch {told}"


def table(outcomes: Iterable[Outcome], where: str) -> str:
    """Return the outcomes as Markdown."""
    shows = {step.name: step.shows for step in ALL}
    rows = [f"On {where}:", "", "| step | what it shows | state | seconds | seen |", "|---|---|---|---|---|"]
    for each in outcomes:
        note = each.note.replace("|", "\\|")
        rows.append(f"| {each.name} | {shows[each.name]} | {each.state} | {each.seconds:g} | {note} |")
    return "\n".join(rows)


def outcomes(names: list[str], environment: dict[str, str]) -> Iterator[Outcome]:
    """Run the steps one after the other."""
    gpu = has_gpu()
    for step in ALL:
        if not names or step.name in names:
            found = run(step, gpu, environment)
            sys.stderr.write(f"{found.name}: {found.state} ({found.seconds:g} s) {found.note}\n")
            yield found


def main() -> None:
    """Run the steps, print the table, and exit with 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python scripts/gpu_check.py", description=__doc__)
    parser.add_argument("--wheels", type=Path, help="folder of wheels for what is missing")
    parser.add_argument("--only", nargs="*", default=[], help="names of steps")
    parser.add_argument("--results", type=Path, help="file for the outcomes as JSON")
    parser.add_argument("--page", action="store_true", help="write the table into docs/gpu.md")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        (step,) = (each for each in ALL if each.name == options.step)
        sys.stdout.write(f"{step.run(options.gpu)}\n")
        return
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="torchyard-wheels-") as target:
        for outcome in outcomes(options.only, add_wheels(options.wheels, Path(target))):
            found.append(outcome)
            if options.results:  # after each step: a machine that is lent may be taken back
                options.results.write_text(json.dumps([asdict(each) for each in found], indent=1))
    text = table(found, machine())
    sys.stdout.write(f"{text}\n")
    if options.page:
        PAGE.write_text(generated.between(PAGE.read_text(), "gpu check", text))
    sys.exit(any(each.state in {FAILED, TIMED_OUT} for each in found))


if __name__ == "__main__":
    main()
