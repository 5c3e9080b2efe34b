"""The check of a GPU machine runs here, with each step in its state: what needs a GPU says that there is none."""

import json
import os
import subprocess
import sys
from pathlib import Path

from scripts.gpu_check import ALL

ROOT = Path(__file__).parents[3]


def test_the_half_that_needs_no_gpu_runs_and_the_rest_says_that_it_did_not(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gpu_check.py"), "--results", str(out)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    states = {each["name"]: each["state"] for each in json.loads(out.read_text())}
    assert states == {step.name: "ran on the CPU" if step.on_cpu else "not here: no GPU" for step in ALL}, done.stderr
    assert done.returncode == 0
