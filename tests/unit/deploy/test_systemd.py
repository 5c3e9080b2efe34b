"""The worker's systemd unit."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[3] / "deploy" / "torchyard-worker.service"


def test_a_restart_of_the_worker_ends_no_training() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["KillMode"] == "process"
    assert service["OOMPolicy"] == "continue"
    assert service["Delegate"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's own checker is not on this machine")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/opt/torchyard/bin/python", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
