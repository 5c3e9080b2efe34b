"""Real UNIX accounts of the machine, made by a test that runs as root."""

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.wait import until

#: How userdel ends while the account has a process.
_IN_USE = 8
#: What useradd, usermod and userdel say while another of them is at work for longer than they wait.
_LOCKED = "try again later"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become other users and to give them files")


@contextmanager
def account() -> Iterator[pwd.struct_passwd]:
    """A new account without a home, as an administrator makes one; removed afterwards."""
    name = f"ty{secrets.token_hex(4)}"
    change("useradd", "--no-create-home", "--shell", "/bin/sh", name)
    try:
        yield pwd.getpwnam(name)
    finally:
        until(lambda: _removed(name), what=f"the end of the last process of {name}")


def change(*command: str) -> None:
    """Run a command of the administrator's; one that finds the accounts locked by another runs again."""
    until(lambda: _changed(command), what=f"{command[0]}'s lock of the accounts")


def _changed(command: Sequence[str]) -> bool:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode and _LOCKED in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    return True


def _removed(name: str) -> bool:
    """Remove an account; False while a process of it that was killed has not ended yet, or accounts are locked."""
    done = subprocess.run(["userdel", name], check=False, capture_output=True, text=True)
    assert done.returncode in {0, _IN_USE} or _LOCKED in done.stderr, done.stderr
    return done.returncode == 0


def python(folder: Path) -> Path:
    """An interpreter with the tests' own packages that every account can run: an environment in this folder."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/local/bin:/usr/bin")
    bases = [str(Path(sys.base_prefix, "bin", name)), *([found] if found else [])]
    searched = [each for each in sys.path if each.endswith("-packages")] or [sysconfig.get_path("purelib")]
    for number, base in enumerate(bases):
        made = folder / f"environment-{number}"
        subprocess.run([base, "-m", "venv", "--without-pip", made], check=True)
        (made / "lib" / name / "site-packages" / "tests.pth").write_text("\n".join(searched))
        interpreter = made / "bin" / "python"
        try:
            subprocess.run([interpreter, "-c", "import torch"], user="nobody", check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return interpreter
    pytest.skip("needs a Python and packages that other accounts can reach")
