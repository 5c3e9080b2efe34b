"""The check of a GPU machine runs here, with each step in its state: what needs a GPU says that there is none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import gpu_programs as programs
from scripts.gpu_check import ALL
from tests.support import ranks
from tests.support.attempt import AttemptFolder

ROOT = Path(__file__).parents[3]
#: Programs of steps that run here, each with what its step looks for: forked, since each would load PyTorch anew.
FORKED = {
    "fsdp": (programs.RECIPE, "seen cpu float32"),
    "snapshot": (programs.SNAPSHOT, "stored cpu changed since equal"),
    "checkpoint": (programs.STALL, "stall "),
    "report": (programs.REPORT, "report "),
}
RECIPE = {
    "model": {"name": "mlp", "hidden": [64]},
    "data": {"name": "synthetic", "samples": 256, "validation_samples": 64},
    "epochs": 1,
    "strategy": "fsdp",
}


def test_the_half_that_needs_no_gpu_runs_and_the_rest_says_that_it_did_not(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    steps = [step for step in ALL if step.name not in FORKED]
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "scripts" / "gpu_check.py"), "--results", str(out)),
            *("--only", *(step.name for step in steps)),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    states = {each["name"]: each["state"] for each in json.loads(out.read_text())}
    assert states == {step.name: "ran on the CPU" if step.on_cpu else "not here: no GPU" for step in steps}, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("name", FORKED)
def test_programs_print_what_their_steps_look_for(name: str, tmp_path: Path) -> None:
    program, seen = FORKED[name]
    assert [step.on_cpu for step in ALL if step.name == name] == [True]
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    environment = AttemptFolder(tmp_path / "attempt").environment()
    words = ["recipe.json"] if name == "fsdp" else []
    with ranks.started(ranks.script, 1, "train.py", words, environment=environment, cwd=tmp_path) as started:
        started.results()
        assert [line for line in started.output(0).splitlines() if line.startswith(seen)], started.output(0)
