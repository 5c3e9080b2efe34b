"""Small file systems, to be filled."""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small(folder: Path, mebibytes: int, inodes: int = 0) -> Iterator[Path]:
    """A file system of that size at a new folder, which takes so many inodes, or any number; skips the test where there
    is no right to mount one.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,nr_inodes={inodes}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root, to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Writes the file until the disk is full, to the last block."""
    with file.open("wb", 0) as full:
        try:
            while full.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017  what it was written for
