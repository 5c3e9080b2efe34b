import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "settings.md").read_text()
EVERYWHERE = {"TORCHYARD_HOME", "TORCHYARD_URL", "TORCHYARD_TOKEN", "TORCHYARD_NODE"}


def test_the_tables_are_those_of_the_code() -> None:
    subprocess.run([sys.executable, "-m", "scripts.settings_table", "--check"], check=True, cwd=ROOT)


def test_every_variable_that_deployments_set_is_documented() -> None:
    files = [ROOT / "docker-compose.yml", *(ROOT / "deploy").iterdir()]
    used = {name for file in files for name in re.findall(r"TORCHYARD_[A-Z_]+", file.read_text())}
    documented = set(re.findall(r"`(TORCHYARD_[A-Z_]+)`", PAGE))
    assert used
    assert used | EVERYWHERE <= documented


def test_what_the_core_reads_itself_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "torchyard").rglob("*.py") if "injob" not in path.parts]
    read = {name for text in sources for name in re.findall(r'environ\.get\("(TORCHYARD_[A-Z_]+)"', text)}
    assert read
    assert read <= set(re.findall(r"`(TORCHYARD_[A-Z_]+)`", PAGE))
