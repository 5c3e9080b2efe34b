"""The in-job part runs in interpreters that hold nothing of ours."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.attempt import AttemptFolder, clean_environment

PACKAGE = Path(__file__).parents[3] / "torchyard"
SOURCES = [PACKAGE / "__init__.py", *sorted((PACKAGE / "injob").glob("*.py"))]
OLD_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))

USE = """
import sys, torchyard
assert not hasattr(torchyard, "Client")
assert not hasattr(torchyard, "nonsense")
torchyard.report(step=1, total_steps=2, loss=0.5)
assert torchyard.should_checkpoint()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("torch", "pydantic", "httpx")))
with torchyard.checkpoint(step=1, metrics={"loss": 0.5}) as folder:
    (folder / "state").write_text("x")
raise AssertionError("a stop leaves")
"""

#: Modules of the standard library whose import takes longer than all else of a first report.
SLOW = {"typing", "json", "re", "enum", "contextlib", "dataclasses", "importlib", "pathlib", "subprocess", "tempfile"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_syntax_is_that_of_3_9(source: Path) -> None:
    ast.parse(source.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_imports_are_the_standard_library_or_our_own(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.partition(".")[0] in {*sys.stdlib_module_names, "torchyard"}, name


@pytest.mark.parametrize(
    "python",
    [
        sys.executable,
        pytest.param(
            OLD_PYTHONS[0] if OLD_PYTHONS else "",
            marks=pytest.mark.skipif(not OLD_PYTHONS, reason="no Python 3.9 on this machine"),
        ),
    ],
    ids=["this", "3.9"],
)
def test_it_runs_with_nothing_else_on_the_path(python: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE / "injob", tmp_path / "path/torchyard/injob", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "path/torchyard")
    folder = AttemptFolder(tmp_path / "attempt")
    folder.ask("stop")
    done = subprocess.run(
        [python, "-S", "-W", "error", "-c", USE],
        env=clean_environment(PYTHONPATH=str(tmp_path / "path"), **folder.environment()),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert folder.series("loss") == {1: 0.5}
    assert folder.outcome() == {"stopped_at_step": 1}
    assert [path.name for path in folder.checkpoints()] == ["step-000000001"]


def test_a_report_imports_little(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path / "attempt")
    code = "import sys, torchyard; torchyard.report(loss=0.5); print(*sys.modules)"
    env = clean_environment(PYTHONPATH=str(PACKAGE.parent), **folder.environment())
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "torchyard.injob.metrics" in done.stdout
    assert not SLOW & set(done.stdout.split())
    assert folder.series("loss") == {0: 0.5}
