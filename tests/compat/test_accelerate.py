"""`attach` on the real Accelerate: a loader that it prepared goes on exactly, or it is said why not."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from worker.launching.environment import install_injob

SCRIPT = Path(__file__).with_name("accelerated.py")


def ends(environment: Path, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """How a run ends that is never stopped, and those that are stopped and go on."""
    injob = install_injob(folder)
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(injob), "OMP_NUM_THREADS": "1"}
    words = [environment / "bin" / "python", SCRIPT, *arguments]
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_prepared_loader_goes_on_exactly(environment: Path, tmp_path: Path) -> None:
    whole, *resumed = ends(environment, tmp_path, "0", "plain", "1", "3", "7", "12", "20")
    assert (whole["step"], whole["inexact"]) == (21, None)
    assert resumed == [whole] * 5


def test_data_that_draws_while_it_is_read_ahead_is_told_of(environment: Path, tmp_path: Path) -> None:
    whole, resumed = ends(environment, tmp_path, "0", "noisy", "10")
    assert resumed["step"] == whole["step"] == 21
    assert "reads one batch ahead" in resumed["inexact"]
