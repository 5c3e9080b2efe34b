import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from worker.exceptions import PythonError
from worker.launching import interpreter

DEFAULT = Path("/usr/bin/python3")


def make(prefix: Path, mark: str | None = None) -> Path:
    (prefix / "bin").mkdir(parents=True)
    python = prefix / "bin" / "python"
    python.symlink_to(DEFAULT if DEFAULT.exists() else "/bin/sh")
    if mark:
        (prefix / mark).mkdir()
    return python


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """A folder that may not be entered, which root may until it is another account."""
    folder.chmod(0)
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)
        folder.chmod(0o700)


@pytest.mark.parametrize(("mark", "name"), [("pyvenv.cfg", "VIRTUAL_ENV"), ("conda-meta", "CONDA_PREFIX")])
def test_a_prefix_and_its_interpreter_are_the_same(tmp_path: Path, mark: str, name: str) -> None:
    python = make(tmp_path / "env", mark)
    expected = interpreter.Interpreter(path=python, prefix=tmp_path / "env", prefix_name=name)
    assert interpreter.resolve(str(tmp_path / "env"), DEFAULT) == expected
    assert interpreter.resolve(str(python), DEFAULT) == expected


def test_an_interpreter_of_no_environment(tmp_path: Path) -> None:
    python = make(tmp_path / "plain")
    assert interpreter.resolve(str(python), DEFAULT) == interpreter.Interpreter(path=python)


def test_the_workers_own_by_default(tmp_path: Path) -> None:
    assert interpreter.resolve(None, tmp_path / "bin" / "python").path == tmp_path / "bin" / "python"


def test_what_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for given, words in [
        ("env", "must be an absolute path"),
        (str(tmp_path / "gone"), f"{tmp_path}/gone does not exist"),
        (str(tmp_path), f"{tmp_path}/bin/python does not exist"),
        (str(tmp_path / "file"), "no program that the worker may execute"),
    ]:
        with pytest.raises(PythonError, match=words):
            interpreter.resolve(given, DEFAULT)


@pytest.mark.parametrize("named", ["env", "env/bin/python"])
def test_what_the_worker_may_not_look_at_is_named(tmp_path: Path, named: str) -> None:
    make(tmp_path / "home" / "env")
    with (
        closed(tmp_path / "home"),
        pytest.raises(PythonError, match=f"home/{named} is closed to the worker"),
    ):
        interpreter.resolve(str(tmp_path / "home" / named), DEFAULT)
