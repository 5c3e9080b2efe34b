"""Contents of open files: hashed, read in pieces, copied, and given a second name."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FICLONE: Final = 0x40049409
_CHUNK: Final = 2**20
_ZEROS: Final = memoryview(bytes(_CHUNK))


def second_name(descriptor: int, target: Path) -> None:
    """Give an open file another name on the same file system. Raises OSError."""
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Given a folder, os.link follows the link in /proc, which leads to the file itself and to no name.
        os.link(f"/proc/self/fd/{descriptor}", target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def copy(descriptor: int, target: Path, size: int) -> None:
    """Copy an open file's first `size` bytes to a new file, sharing its blocks where the file system can.

    Holes stay holes: an LMDB of a gigabyte may be a terabyte long.
    """
    out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.ioctl(out, _FICLONE, descriptor)
        except OSError:
            for chunk in read_chunks(descriptor, size):
                if chunk == _ZEROS[: len(chunk)]:
                    os.lseek(out, len(chunk), os.SEEK_CUR)
                else:
                    _write_all(out, chunk)
        os.ftruncate(out, size)
    finally:
        os.close(out)


def sha256_of(descriptor: int) -> tuple[str, int]:
    """SHA-256 and size of an open file's content."""
    digest = hashlib.sha256()
    position = 0
    while chunk := os.pread(descriptor, _CHUNK, position):
        digest.update(chunk)
        position += len(chunk)
    return digest.hexdigest(), position


def read_chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes of an open file, piece by piece; raises OSError if it shrank."""
    position = 0
    while position < size:
        chunk = os.pread(descriptor, min(_CHUNK, size - position), position)
        if not chunk:
            raise OSError(f"the file shrank from {size} to {position} bytes while it was read")
        position += len(chunk)
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
