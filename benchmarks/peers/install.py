"""Installing peers: from the package index into an environment of their own, or by apt where we are root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.interface import NotInstalledError

#: Kept from run to run; `make clean` removes it.
ENVIRONMENTS = Path(__file__).parents[2] / ".venv-peers"
LONGEST_S = 600


def environment(name: str, requirement: str) -> Path:
    """Return the folder of programs of an environment that has the requirement, made if absent."""
    folder = ENVIRONMENTS / name
    stamp, programs = folder / "requirement", folder / "bin"
    if not stamp.exists() or stamp.read_text() != requirement:
        _quiet([sys.executable, "-m", "venv", "--clear", str(folder)])
        _quiet([str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", requirement])
        stamp.write_text(requirement)
    return programs


def debian(package: str, program: str, also: Sequence[str] = ()) -> str:
    """Make sure that a Debian package is here and return its version."""
    if shutil.which(program) is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise NotInstalledError(f"not installed: apt-get install {' '.join([package, *also])}, as root")
        _quiet(["apt-get", "update", "-qq"])
        _quiet(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package, *also])
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or "unknown"


def _quiet(command: Sequence[str]) -> None:
    variables = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=LONGEST_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"not installed: {error}") from error
    if done.returncode != 0:
        raise NotInstalledError(f"not installed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
