"""MLflow's stores: metric files with a line ``<milliseconds> <value> <step>`` a point, or rows in SQLite."""

import sqlite3
import sys
from typing import Final

from torchyard.ids import JobId
from torchyard.injob.mlflow import TAG
from worker.trackers.points import Chunk, Read, TrackerPoint, whole


def read(chunk: Chunk, limit: int, name: str) -> Read:
    """The points of the whole lines at the start of a chunk, at most `limit` of them."""
    found = Read(end=chunk.at)
    at = 0
    for _ in range(limit):
        newline = chunk.data.find(b"\n", at)
        if newline < 0:
            at = _rest(chunk, at, found, name)
            break
        _take(chunk.data[at:newline], chunk.at + newline + 1, found, name)
        at = newline + 1
    found.end = chunk.at + at
    return found


def _rest(chunk: Chunk, at: int, found: Read, name: str) -> int:
    """A line without an end: torn, unless nobody writes any more; one as long as a chunk is none."""
    if at < len(chunk.data) and ((chunk.ended and chunk.last) or (at == 0 and not chunk.last)):
        _take(chunk.data[at:], chunk.at + len(chunk.data), found, name)
        return len(chunk.data)
    return at


def _take(line: bytes, end: int, found: Read, name: str) -> None:
    try:
        time_ms, value, *more = line.decode().split()
        point = TrackerPoint(end, whole(int(more[0])) if more else 0, whole(int(time_ms) * 1000), {name: float(value)})
    except ValueError:
        found.skipped += 1
    else:
        found.points.append(point)


_TAGGED: Final = "m.run_uuid IN (SELECT run_uuid FROM tags WHERE key = ? AND value = ?)"
_ROWS: Final = (
    "SELECT m.rowid, m.run_uuid, r.name, m.key, m.value, m.timestamp, m.step, m.is_nan FROM metrics m"
    " JOIN runs r ON r.run_uuid = m.run_uuid WHERE m.rowid > ? AND {} ORDER BY m.rowid LIMIT ?"
)


def _runs(job: JobId | None) -> tuple[str, tuple[str, ...]]:
    """Return the runs that count: those that carry the job's tag, or all."""
    return ("1", ()) if job is None else (_TAGGED, (TAG, job))


def last_row(connection: sqlite3.Connection, job: JobId | None) -> int:
    """Number of the newest row of the job's runs, or 0. Raises sqlite3.Error."""
    condition, values = _runs(job)
    query = f"SELECT COALESCE(MAX(m.rowid), 0) FROM metrics m WHERE {condition}"  # noqa: S608 (constants)
    return int(connection.execute(query, values).fetchone()[0])


def read_rows(connection: sqlite3.Connection, after: int, limit: int, job: JobId | None) -> Read:
    """The points behind a row, of at most `limit` rows of the job's runs. Raises sqlite3.Error."""
    condition, values = _runs(job)
    found = Read(end=after)
    for number, run, label, *logged in connection.execute(_ROWS.format(condition), (after, *values, limit)):
        found.end = int(number)
        try:
            found.points.append(_of_row(found.end, str(run), str(label or run), *logged))
        except (ValueError, TypeError):
            found.skipped += 1
    return found


def _of_row(
    end: int, run: str, label: str, name: str, value: float, time_ms: int, step: int, is_nan: int
) -> TrackerPoint:
    """MLflow keeps infinity as the largest number, and what is none as 0 with a flag."""
    number = float("nan") if is_nan else float(value)
    if abs(number) >= sys.float_info.max:
        number = float("inf") if number > 0 else float("-inf")
    return TrackerPoint(end, whole(step), whole(time_ms * 1000), {str(name): number}, run, label)
