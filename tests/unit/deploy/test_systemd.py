"""The systemd units."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from worker.limits.hierarchies import SUBGROUP

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = ["torchyard.service", "torchyard-worker.service"]


def service_of(unit: str) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(DEPLOY / unit)
    return parsed["Service"]


@pytest.mark.parametrize("unit", UNITS)
def test_a_restart_ends_no_training(unit: str) -> None:
    service = service_of(unit)
    assert service["KillMode"] == "process"
    assert service["OOMPolicy"] == "continue"


@pytest.mark.parametrize("unit", UNITS)
def test_groups_of_jobs_can_be_made_beside_the_workers(unit: str) -> None:
    service = service_of(unit)
    assert service["Delegate"] == "yes"
    assert service["DelegateSubgroup"] == SUBGROUP


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's own checker is not on this machine")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(unit: str, tmp_path: Path) -> None:
    here = tmp_path / unit
    text, replaced = re.subn(r"^ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / unit).read_text(), flags=re.MULTILINE)
    assert replaced == 1
    here.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "DelegateSubgroup" not in line]  # unknown before 254
    assert (done.returncode, said) == (0, [])
