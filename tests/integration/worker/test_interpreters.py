"""A job in an environment of its own: `import torchyard` works there, and nothing else of ours does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.node import Box, log


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A venv without pip or anything else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return tmp_path / "bare"


SCRIPT = """
import importlib.util, os, shutil, sys
import torchyard
torchyard.report(step=1, loss=0.5)
assert torchyard.restore() is None
print(torchyard.__file__)
print([name for name in ("service", "worker", "trainer", "torch", "pydantic") if importlib.util.find_spec(name)])
print(hasattr(torchyard, "Client"))
print(sys.prefix, os.environ["VIRTUAL_ENV"], shutil.which("python"))
"""


def test_a_bare_venv_imports_the_in_job_part_and_nothing_else(tmp_path: Path, bare: Path) -> None:
    box = Box(tmp_path)
    folder, result = box.run(
        launcher="python", command=["python", "train.py"], python=str(bare), files={"train.py": SCRIPT}
    )
    assert result.exit_code == 0, log(folder)
    module, ours, client, places = log(folder).splitlines()
    assert module == str(box.launcher.injob / "torchyard" / "__init__.py")
    assert (ours, client) == ("[]", "False")
    assert places == f"{bare} {bare} {bare}/bin/python"
    assert list((folder.path / "job" / "metrics").iterdir())


def test_the_users_own_search_path_comes_after_ours(tmp_path: Path, bare: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "own.py").write_text("value = 7")
    folder, _ = Box(tmp_path).run(
        launcher="python",
        command=["-c", "import own, torchyard; print(own.value)"],
        python=str(bare / "bin" / "python"),
        env={"PYTHONPATH": str(tmp_path / "lib")},
    )
    assert log(folder) == "7\n"
