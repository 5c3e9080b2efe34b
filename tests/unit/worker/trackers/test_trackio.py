import json
import math
import os
import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.wait import tick
from worker.trackers import database as databases
from worker.trackers import trackio

INSERT = "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('1970-01-01T00:00:01+00:00', ?, ?, ?)"
COLUMNS = "id INTEGER PRIMARY KEY AUTOINCREMENT, run_id, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT"


def opened(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    return databases.opened(path.parent, path.name, os.getuid())


def database(path: Path, rows: Iterable[tuple[str, float, Any]]) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"CREATE TABLE IF NOT EXISTS metrics ({COLUMNS})")
        connection.executemany(INSERT, [(run, step, json.dumps(logged).encode()) for run, step, logged in rows])
    connection.close()
    return path


def test_rows_are_read_from_where_one_was(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", [("one", 0, {"loss": 1, "n": {"a": "Infinity"}}), ("two", 3, {"loss": "NaN"})])
    with opened(path) as connection:
        found = trackio.read(connection, 0, 10)
        assert [(point.run, point.step, point.time_us) for point in found.points] == [
            ("one", 0, 1_000_000),
            ("two", 3, 1_000_000),
        ]
        assert found.points[0].values == {"loss": 1.0, "n.a": math.inf}
        assert math.isnan(found.points[1].values["loss"])
        assert [point.step for point in trackio.read(connection, 1, 10).points] == [3]
        assert [point.step for point in trackio.read(connection, 0, 1).points] == [0]
        assert trackio.last(connection) == found.end == 2


def test_strange_rows_are_counted(tmp_path: Path) -> None:
    rows = [("one", 0, [1]), ("one", 1, {"text": "x"}), ("one", 2, {"loss": 2}), ("one", math.inf, {"loss": 3})]
    path = database(tmp_path / "p.db", rows)
    with sqlite3.connect(path) as writer:
        writer.execute("INSERT INTO metrics (timestamp, step, metrics) VALUES ('yesterday', 4, '{\"loss\": 1}')")
        writer.execute("INSERT INTO metrics (timestamp, step, metrics) VALUES ('yesterday', NULL, 'x')")
    writer.close()
    with opened(path) as connection:
        found = trackio.read(connection, 0, 10)
    assert ([point.step for point in found.points], found.skipped, found.end) == ([2], 4, 6)


def test_it_reads_while_somebody_writes_and_never_writes(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", [("one", 0, {"loss": 1})])
    writer = sqlite3.connect(path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO metrics (timestamp, step, metrics) VALUES ('', 4, '{}')")
    with opened(path) as connection:
        assert len(trackio.read(connection, 0, 10).points) == 1
        with pytest.raises(sqlite3.Error):
            connection.execute("DELETE FROM metrics")
    writer.commit()
    writer.close()


def test_a_closed_database_is_read_without_a_trace(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", [("one", 0, {"loss": 1})])
    with opened(path) as connection:
        assert len(trackio.read(connection, 0, 10).points) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["p.db"]


def test_what_was_read_while_the_file_changed_does_not_count(tmp_path: Path) -> None:
    path = database(tmp_path / "p.db", [("one", 0, {"loss": 1})])
    reading = opened(path)
    trackio.read(reading.__enter__(), 0, 10)
    tick(tmp_path)
    database(path, [("one", 1, {"loss": 2})])
    with pytest.raises(sqlite3.OperationalError, match="meanwhile"):
        reading.__exit__(None, None, None)


def test_no_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    path.write_bytes(b"noise" * 1000)
    with opened(path) as connection, pytest.raises(sqlite3.Error):
        trackio.read(connection, 0, 10)
