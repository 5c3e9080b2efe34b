"""Real UNIX accounts of the machine, made by a test that runs as root."""

import os
import pwd
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become other users and to give them files")


@contextmanager
def account() -> Iterator[pwd.struct_passwd]:
    """A new account without a home, as an administrator makes one; removed afterwards."""
    name = f"ty{secrets.token_hex(4)}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", name], check=True, capture_output=True)
