"""The Python of a job: an interpreter, a venv or a conda prefix."""

import os
from dataclasses import dataclass
from pathlib import Path

from worker.exceptions import PythonError


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """An executable interpreter and the environment it belongs to."""

    path: Path
    prefix: Path | None = None
    """Root of its venv or conda environment."""
    prefix_name: str = "VIRTUAL_ENV"
    """The variable that programs expect the prefix in."""


def resolve(python: str | None, default: Path) -> Interpreter:
    """The interpreter of a spec's `python`, or the worker's own. Raises PythonError naming the path.

    Links are not followed: a venv's interpreter is a link, and where it lies is what makes it the venv's.
    """
    if python is None:
        return _with_prefix(default)
    given = Path(python)
    if not given.is_absolute():
        raise PythonError(f"python: {python} must be an absolute path: an interpreter, a venv or a conda prefix")
    try:
        path = given / "bin" / "python" if given.is_dir() else given
        there = path.exists()
    except PermissionError as error:
        raise PythonError(
            f"python: {given} is closed to the worker's account: make the environment elsewhere, or name another"
        ) from error
    if not there:
        raise PythonError(f"python: {path} does not exist on this node: make the environment here, or name another")
    if not path.is_file() or not os.access(path, os.X_OK):
        raise PythonError(f"python: {path} is no program that the worker may execute")
    return _with_prefix(path)


def _with_prefix(path: Path) -> Interpreter:
    prefix = path.parent.parent
    if (prefix / "pyvenv.cfg").exists():
        return Interpreter(path=path, prefix=prefix)
    if (prefix / "conda-meta").exists():
        return Interpreter(path=path, prefix=prefix, prefix_name="CONDA_PREFIX")
    return Interpreter(path=path)
