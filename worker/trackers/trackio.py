"""Databases of Trackio, one a project: rows of the table `metrics`, read in place and never locked for long."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from worker.trackers.points import Point, Read, global_step, numbers, whole

#: A read that takes longer is given up: the file is the job's, and may hold anything.
PATIENCE_S: Final = 2.0
#: Values of more characters than this are no numbers.
_MAX_TEXT: Final = 2**20
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ROWS: Final = "SELECT id, run_name, step, timestamp, metrics FROM metrics WHERE id > ? ORDER BY id LIMIT ?"


#: An open connection for the length of a `with`.
Opened = AbstractContextManager[sqlite3.Connection]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads, and leaves no file behind. Raises sqlite3.Error, also when the file has changed."""
    # Without a log beside it nobody has it open: SQLite would make one, and leave its index there.
    before = None if _log(path).exists() else path.stat()
    options = "mode=ro" if before is None else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, timeout=0)
    try:
        until = time.monotonic() + PATIENCE_S
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT)
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
    finally:
        connection.close()
    if before is not None and (_log(path).exists() or _changed(before, path.stat())):
        raise sqlite3.OperationalError(f"{path} was written meanwhile: read again later")


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_ino, before.st_size, before.st_mtime_ns) != (after.st_ino, after.st_size, after.st_mtime_ns)


def last(connection: sqlite3.Connection) -> int:
    """Number of the newest row, or 0. Raises sqlite3.Error."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM metrics").fetchone()[0])


def read(connection: sqlite3.Connection, after: int, limit: int) -> Read:
    """The points behind a row, of at most `limit` rows. Raises sqlite3.Error."""
    found = Read(end=after)
    for number, run, step, moment, logged in connection.execute(_ROWS, (after, limit)):
        found.end = int(number)
        try:
            values = numbers(_finite(_json(logged)))
            point = Point(found.end, global_step(values, step), _microseconds(moment), values, str(run))
        except (ValueError, TypeError, AttributeError):
            found.skipped += 1
        else:
            if values:
                found.points.append(point)
    return found


def _json(logged: str | bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(logged))
    except RecursionError as error:
        raise ValueError(str(error)) from error


def _finite(logged: dict[str, Any]) -> dict[str, Any]:
    """With the words for what JSON cannot say turned into numbers."""
    return {name: _number(value) for name, value in logged.items()}


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return _finite(value)
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _microseconds(moment: str) -> int:
    return whole(datetime.fromisoformat(moment).timestamp() * 1e6)
