"""Databases of Trackio, one a project: rows of the table `metrics`."""

import json
import sqlite3
from datetime import datetime
from typing import Any, Final

from worker.trackers.points import Read, TrackerPoint, global_step, numbers, whole

_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ROWS: Final = "SELECT id, run_name, step, timestamp, metrics FROM metrics WHERE id > ? ORDER BY id LIMIT ?"


def last(connection: sqlite3.Connection) -> int:
    """Number of the newest row, or 0. Raises sqlite3.Error."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM metrics").fetchone()[0])


def read(connection: sqlite3.Connection, after: int, limit: int) -> Read:
    """The points behind a row, of at most `limit` rows. Raises sqlite3.Error."""
    found = Read(end=after)
    for number, run, step, moment, logged in connection.execute(_ROWS, (after, limit)):
        found.end = int(number)
        try:
            values = numbers(_finite(dict(json.loads(logged))))
            point = TrackerPoint(found.end, global_step(values, step), _microseconds(moment), values, str(run))
        except (ValueError, TypeError, AttributeError, RecursionError):
            found.skipped += 1
        else:
            if values:
                found.points.append(point)
    return found


def _finite(logged: dict[str, Any]) -> dict[str, Any]:
    """Turn the words for what JSON cannot say into numbers."""
    return {name: _number(value) for name, value in logged.items()}


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return _finite(value)
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _microseconds(moment: str) -> int:
    return whole(datetime.fromisoformat(moment).timestamp() * 1e6)
