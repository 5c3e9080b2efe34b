"""docs/architecture.md cannot rot: its tables and paths are checked against the code."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_state_tables_are_those_of_the_code() -> None:
    subprocess.run([sys.executable, "-m", "scripts.state_tables", "--check"], check=True, cwd=ROOT)


def test_the_root_of_the_service_stays_small() -> None:
    modules = {path.name for path in (ROOT / "service").glob("*.py")} - {"__init__.py"}
    assert len(modules) <= 8, "what belongs together has a package"


def test_every_path_it_names_exists() -> None:
    rooms = ("tests/", "torchyard/", "service/", "worker/", "trainer/", "migrations/", "deploy/", "docs/")
    named = {path for path in re.findall(r"`([\w./-]+)`", PAGE) if path.startswith(rooms)}
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]
