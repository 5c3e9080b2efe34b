"""SQLite databases of a job, read in place: the job's own writers wait for nobody, and no file is left behind."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from worker.attempts import opening

#: A read that takes longer is given up: the file is the job's, and may hold anything.
PATIENCE_S: Final = 2.0
#: Values of more characters than this are no numbers.
_MAX_TEXT: Final = 2**20
#: Where a database counts its transactions.
_COUNTER: Final = (4, 24)


class BusyError(sqlite3.OperationalError):
    """The database is being written: what was read does not count, read again later."""


@contextmanager
def opened(base: Path, path: str, owner: int) -> Iterator[sqlite3.Connection]:
    """A connection that only reads ``base/path``. Raises OSError and sqlite3.Error, `BusyError` at its end.

    With a write-ahead log beside it readers and writers do not meet. Else no lock is taken, which would keep the job
    from writing; instead what was read counts only if no transaction was under way before and after, and their count is
    the same.
    """
    with opening.file_inside(base, path, owner) as descriptor:
        name = base / path
        logged = _beside(name, "-wal") is not None
        before = None if logged else _state(name, descriptor)
        # Without a log SQLite would make one, and leave its index there.
        connection = sqlite3.connect(
            f"{name.as_uri()}?{'mode=ro' if logged else 'mode=ro&immutable=1'}", uri=True, timeout=0
        )
        try:
            if not _has_open(descriptor):
                raise opening.StrangeFileError(f"{name} was replaced meanwhile: left alone")
            until = time.monotonic() + PATIENCE_S
            connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT)
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        finally:
            connection.close()
        if before is not None and _state(name, descriptor) != before:
            raise BusyError(f"{name} was written meanwhile: read again later")


def stamp(base: Path, path: str, owner: int) -> tuple[Any, ...]:
    """Return a mark that changes whenever something is written. Raises OSError."""
    with opening.file_inside(base, path, owner) as descriptor:
        status = os.fstat(descriptor)
    return (status.st_ino, status.st_size, status.st_mtime_ns, _beside(base / path, "-wal"))


def _state(name: Path, descriptor: int) -> tuple[Any, ...]:
    """Return the mark of a database without a log while no transaction writes to it. Raises `BusyError`."""
    if _beside(name, "-wal") is not None or (_beside(name, "-journal") or (0, 0))[0] > 0:
        raise BusyError(f"{name} is being written: read again later")
    status = os.fstat(descriptor)
    return (status.st_ino, status.st_size, status.st_mtime_ns, os.pread(descriptor, *_COUNTER))


def _beside(name: Path, suffix: str) -> tuple[int, int] | None:
    """Size and time of a file of SQLite's own beside a database."""
    try:
        status = name.with_name(name.name + suffix).lstat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _has_open(descriptor: int) -> bool:
    """Return whether this process has the file open a second time: the job may redirect the path that SQLite opens."""
    wanted = os.fstat(descriptor)
    for other in map(int, opening.names_of(Path("/proc/self/fd"))):
        try:
            if other != descriptor and os.path.samestat(os.fstat(other), wanted):
                return True
        except OSError:  # closed since, by another thread
            continue
    return False
