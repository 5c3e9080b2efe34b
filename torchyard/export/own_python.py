"""Programs that run in the user's own Python, for packages that TorchYard does not bring."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from torchyard.analysis import interpreters
from torchyard.exceptions import TorchYardError


def interpreter() -> Path:
    """The Python that is active in this shell, else the one that runs this."""
    active = interpreters.active_python()
    if active is None:
        return Path(sys.executable)
    path = Path(active.path)
    return path / "bin" / "python" if path.is_dir() else path


def run(program: str, arguments: Sequence[str], package: str, feed: Callable[[IO[str]], None]) -> str:
    """Run a program of this folder and return what it prints; `feed` writes its input. Raises TorchYardError."""
    python = interpreter()
    check(python, package)
    command = [str(python), str(Path(__file__).with_name(program)), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        try:
            feed(child.stdin)
            printed, said = child.communicate()
        except BrokenPipeError:
            child.stdin = None
            printed, said = child.communicate()
    if child.returncode:
        lines = said.strip().splitlines() or [f"exit code {child.returncode}"]
        raise TorchYardError(f"{package}: {lines[-1]}")
    return printed.strip()


def check(python: Path, package: str) -> None:
    """Raise TorchYardError with the command that installs a package which is missing."""
    probe = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    if subprocess.run([python, "-c", probe], cwd="/", capture_output=True, check=False).returncode:
        raise TorchYardError(
            f"{package} is not installed in {python.parent.parent}: `{python} -m pip install {package}`"
        )
