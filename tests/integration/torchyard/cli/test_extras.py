import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import distributions

RUN = "import sys; sys.path += sys.argv.pop(1).split(':'); from torchyard.cli.main import run; run()"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install torchyard` brings, and nothing else."""
    site = tmp_path_factory.mktemp("core")
    distributions.link(distributions.brought(), site)
    (site / "torchyard").symlink_to(distributions.ROOT / "torchyard")
    return site


def yard(core: Path, *words: str, home: Path, also: Path | None = None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCHYARD_")}
    command = [sys.executable, "-I", "-S", "-c", RUN, f"{also or core}:{core}", *words]
    return subprocess.run(
        command, env={**kept, "TORCHYARD_HOME": str(home)}, cwd=home, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "words", [["-h"], ["submit", "-h"], ["pull", "-h"], ["up", "-h"], ["bench", "strategies", "-h"]]
)
def test_the_core_alone_explains_every_command(core: Path, tmp_path: Path, words: list[str]) -> None:
    done = yard(core, *words, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Usage: yard" in done.stdout


@pytest.mark.parametrize("words", [["ls"], ["submit", "job.yaml"], ["logs", "1"], ["pull", "1"], ["top"]])
def test_the_core_alone_runs_what_a_laptop_needs(core: Path, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "job.yaml").write_text("name: job\ncommand: [python, train.py]\n")
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = yard(core, *words, home=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "TorchYard is not running here" in done.stderr or "terminal" in done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up"], "box"),
        (["up", "--detach"], "box"),
        (["service"], "service"),
        (["worker", "--join", "http://box:8765"], "worker"),
        (["simulate", "--gpus", "2", "trace.csv"], "service"),
        (["bench", "strategies"], "trainer"),
        (["checkpoints", "average", "1"], "trainer"),
    ],
)
def test_a_command_that_needs_more_says_what_to_install(
    core: Path, tmp_path: Path, words: list[str], extra: str
) -> None:
    done = yard(core, *words, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"needs the {extra}: pip install 'torchyard[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_package_of_the_same_name_is_not_ours(core: Path, tmp_path: Path) -> None:
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").touch()
    distributions.link(["torch"], tmp_path)
    done = yard(core, "bench", "strategies", home=tmp_path, also=tmp_path)
    assert done.returncode == 2
    assert "`yard bench` needs the trainer" in done.stderr
