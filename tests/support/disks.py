"""Small file systems, to be filled, and file systems in user space whose program has ended."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small(folder: Path, mebibytes: int, inodes: int = 0, *, new: bool = True) -> Iterator[Path]:
    """A file system of that size at a new folder, which takes so many inodes, or any number; skips the test where there
    is no right to mount one.
    """
    folder.mkdir(exist_ok=not new)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,nr_inodes={inodes}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root, to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def dead(folder: Path) -> Iterator[None]:
    """A mount on a folder as `sshfs` or `rclone mount` leaves it when it is killed; skips the test where there is no
    right to mount one.
    """
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("needs /dev/fuse")
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    mount = ["mount", "--internal-only", "-t", "fuse", "-o", options, "none", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False, pass_fds=[device]).returncode == 0
    finally:
        os.close(device)
    if not mounted:
        pytest.skip("needs root, to mount a file system in user space")
    try:
        yield
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
