"""Opening what a job's user may have tampered with: no link is followed, no pipe is waited for, strangers' files are
refused.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: An open descriptor for the length of a `with`.
Opened = AbstractContextManager[int]


class StrangeFileError(OSError):
    """Not a regular file of the job's user: it is left alone."""


#: What a path of the job's own making can do: a link, a socket, a folder in a file's place, or forbidden.
_STRANGE: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM})


def strange(error: OSError) -> bool:
    """Return whether it will never be readable; anything else (no descriptors left, a failing disk) may pass."""
    return isinstance(error, StrangeFileError) or error.errno in _STRANGE


@contextmanager
def folder(base: Path, inside: str, *, make: bool = False) -> Iterator[int]:
    """Descriptor of ``base/inside``, made if asked for; nothing in `inside` may be a link. Raises OSError."""
    descriptor = os.open(base, _FOLDER)
    try:
        for name in Path(inside).parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptor)
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def folder_at(at: int, name: str) -> Iterator[int]:
    """Descriptor of a folder in an open one, which may be no link. Raises OSError."""
    descriptor = os.open(name, _FOLDER, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def file(at: int, name: str, owner: int, *, write: bool = False) -> Iterator[int]:
    """Descriptor of a regular file of `owner` in the folder `at`. Raises OSError, `StrangeFileError` among them."""
    descriptor = os.open(name, _FILE | (os.O_RDWR if write else os.O_RDONLY), dir_fd=at)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise StrangeFileError(f"{name} is not a regular file of user {owner}: left alone")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def file_inside(base: Path, path: str, owner: int) -> Iterator[int]:
    """Descriptor of the file ``base/path``, opened folder by folder."""
    parent, name = os.path.split(path)
    with folder(base, parent) as at, file(at, name, owner) as descriptor:
        yield descriptor


def is_there(base: Path, path: str) -> bool:
    """Return whether something has the name ``base/path``, a link too, and no link is on the way to it."""
    parent, name = os.path.split(path)
    try:
        with folder(base, parent) as at:
            os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return False
    return True


def names(at: int) -> list[str]:
    """The sorted names in an open folder."""
    return sorted(os.listdir(at))


def names_of(path: Path) -> list[str]:
    """The sorted names in a folder of the worker's own."""
    return sorted(entry.name for entry in path.iterdir())


@contextmanager
def plain(path: Path, *, write: bool = False) -> Iterator[int]:
    """Descriptor of a regular file in a folder of the worker's own, whoever owns the file itself."""
    descriptor = os.open(path, _FILE | (os.O_RDWR if write else os.O_RDONLY))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StrangeFileError(f"{path} is not a regular file: left alone")
        yield descriptor
    finally:
        os.close(descriptor)
