"""Files that are whole or not there."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from torchyard.errnos import NO_SPACE


def fsync_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hold(folder: Path) -> int | None:
    """An open descriptor whose lock keeps systemd-tmpfiles off a folder and all in it, however old that gets
    (tmpfiles.d(5), on age). Others may hold it as well.

    None while somebody has the folder alone, as whoever looks through it just now: ask again later. Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def reserve(path: Path, size: int) -> None:
    """Take space for a file while there is some, for `write_reserved`. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def write_reserved(path: Path, data: bytes, spare: Path, *, durable: bool = True) -> None:
    """Write as `write_whole`; a full disk takes the space that was reserved at `spare`, then the file's own.

    A reader may then see it torn for an instant. Raises OSError.
    """
    try:
        write_whole(path, data, durable=durable)
        return
    except OSError as error:
        if error.errno not in NO_SPACE or not (spare.exists() or path.exists()):
            raise
    target = spare if spare.exists() else path
    with target.open("r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    target.replace(path)


def write_whole(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Write beside the path and rename; `durable` survives a power cut too. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        fsync_folder(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object of the worker's own, or None when it is not there. Raises ValueError when it is torn."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return dict(json.loads(data))
