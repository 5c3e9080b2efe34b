"""Python interpreters of the submitting machine: the active one, and whether it has torch."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchyard import presence

_PROBE = "import importlib.util as u, sys; print(sys.executable); print(u.find_spec('torch') is not None)"


@dataclass(frozen=True, kw_only=True)
class Python:
    """The interpreter that is active in a shell."""

    path: str
    """A venv or conda prefix, or an interpreter."""
    has_torch: bool

    @property
    def program(self) -> str:
        """The interpreter itself."""
        return str(Path(self.path, "bin", "python")) if presence.is_folder(self.path) else self.path


def python_at(path: str) -> Python | None:
    """The Python that a spec names, if it is on this machine."""
    program = _program_at(path)
    probed = _probe(str(program)) if program.is_absolute() and presence.is_file(program) else None
    return None if probed is None else Python(path=path, has_torch=probed[1])


def absent(path: str) -> str | None:
    """Return the warning that the Python which a spec names is not on this machine; None if it is there."""
    program = _program_at(path)
    if not program.is_absolute() or presence.exists(program):
        return None
    return f"python: there is no {program} on this machine: make the environment, or name another on the job's node"


def _program_at(path: str) -> Path:
    return Path(path, "bin", "python") if presence.is_folder(path) else Path(path)


def active_python(environment: Mapping[str, str] = os.environ) -> Python | None:
    """The Python that ``python`` means in this shell, as a prefix where it is a venv or conda environment."""
    search = environment.get("PATH")
    program = shutil.which("python", path=search) or shutil.which("python3", path=search)
    prefixes = [environment[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environment.get(name)]
    prefixes = [prefix for prefix in prefixes if presence.exists(Path(prefix, "bin", "python"))]
    prefix = next((p for p in prefixes if program and Path(program).parent == Path(p, "bin")), None)
    prefix = prefix or next(iter(prefixes), None)
    if prefix is not None:
        program = str(Path(prefix, "bin", "python"))
    if program is None or (probed := _probe(program)) is None:
        return None
    executable, has_torch = probed
    return Python(path=prefix or _prefix_of(executable), has_torch=has_torch)


def _probe(program: str) -> tuple[str, bool] | None:
    """Ask an interpreter for its own path (a pyenv shim is not it), and whether torch is installed there."""
    try:
        done = subprocess.run([program, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=20, check=True)
        executable, has_torch = done.stdout.split("\n")[:2]
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return executable, has_torch == "True"


def _prefix_of(executable: str) -> str:
    prefix = Path(executable).parent.parent
    is_environment = (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").is_dir()
    return str(prefix) if is_environment else executable
