"""What a machine lacks is said in one exact command, before anything is downloaded."""

import subprocess
import sys
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).parents[3] / "scripts" / "preflight.sh"
TOOLS = ("sh", "awk", "df", "printf")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with the shell's own tools alone: no Redis, no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = next((p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists()), None)
        if found is not None:
            (folder / tool).symlink_to(found)
    return folder


def _preflight(python: str | Path, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    (cwd / ".venv").mkdir(exist_ok=True)  # an environment that is there needs no room
    return subprocess.run(
        ["/bin/sh", PREFLIGHT, str(python)],
        env={"PATH": str(path)}, cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _fake_python(folder: Path, refuses: str) -> Path:
    """A Python that fails every question whose text holds `refuses`."""
    fake = folder / "python-fake"
    fake.write_text(f'#!/bin/sh\ncase "$2" in *{refuses}*) exit 1;; esac\necho "Python 3.9.2"\n')
    fake.chmod(0o755)
    return fake


def test_a_machine_with_everything_passes(tmp_path: Path, bare: Path) -> None:
    (bare / "redis-server").symlink_to("/bin/true")
    done = _preflight(sys.executable, bare, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_python_is_said_with_the_command(tmp_path: Path, bare: Path) -> None:
    done = _preflight("python3.11", bare, tmp_path)
    assert done.returncode == 1
    assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize(
    ("refuses", "mend"),
    [
        ('"(3, 11)"', "make PYTHON="),
        ("ensurepip", "apt-get install python3-venv"),
        ("platform", "apt-get install redis-server"),
    ],
)
def test_what_is_missing_is_said_with_its_mend(tmp_path: Path, bare: Path, refuses: str, mend: str) -> None:
    done = _preflight(_fake_python(tmp_path, refuses), bare, tmp_path)
    assert done.returncode == 1
    assert mend in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_redis_on_the_path_is_enough_for_any_machine(tmp_path: Path, bare: Path) -> None:
    (bare / "redis-server").symlink_to("/bin/true")
    assert _preflight(_fake_python(tmp_path, "platform"), bare, tmp_path).returncode == 0
