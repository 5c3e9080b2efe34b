import math
import os
import sys
from contextlib import closing
from pathlib import Path

from tests.support import mlflow_store
from worker.trackers import database, mlflow
from worker.trackers.points import Chunk, TrackerPoint

MAX = sys.float_info.max


def read(data: bytes, at: int = 0, *, ended: bool = False) -> tuple[list[TrackerPoint], int, int]:
    """Points, end and skipped lines of a file from a place on."""
    found = mlflow.read(Chunk(data=data[at:], at=at, size=len(data), ended=ended), 1000, "loss")
    return found.points, found.end, found.skipped


def test_lines_are_read() -> None:
    points, end, skipped = read(b"1500 0.5 3\n1501 inf 4\n1502 1e-3\n1503 2.0 5 dataset abc\n")
    assert [(point.step, point.time_us, point.values["loss"]) for point in points] == [
        (3, 1_500_000, 0.5),
        (4, 1_501_000, math.inf),
        (0, 1_502_000, 0.001),
        (5, 1_503_000, 2.0),
    ]
    assert (end, skipped) == (55, 0)


def test_a_torn_line_waits_and_counts_once_nobody_writes() -> None:
    data = b"1500 0.5 3\n1501 0.2"
    points, end, _ = read(data)
    assert ([point.step for point in points], end) == ([3], 11)
    assert read(data, end)[1] == end
    assert [point.values for point in read(data, end, ended=True)[0]] == [{"loss": 0.2}]


def test_bad_lines_are_counted() -> None:
    points, _, skipped = read(b"hello\n\n1 2 x\n1 nan 1\n\xff\xff 1 1\n9e99 1 1\n1 1 99999999999999999999\n")
    assert len(points) == 1
    assert math.isnan(points[0].values["loss"])
    assert skipped == 6


def test_rows_of_a_database_are_read_from_where_one_was(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    odd = [math.nan, math.inf, -math.inf, 1e300]
    mlflow_store.log(path, "a", [("odd", step, min(max(each, -MAX), MAX)) for step, each in enumerate(odd)])
    mlflow_store.log(path, "b", [("loss", 7, 0.5)], job="job-1")
    with database.opened(tmp_path, path.name, os.getuid()) as connection:
        found = mlflow.read_rows(connection, 0, 10, None)
        assert repr([point.values["odd"] for point in found.points[:4]]) == repr(odd)
        assert found.points[4][:6] == (5, 7, 1_000_000, {"loss": 0.5}, "b", "name of b")
        assert [point.step for point in mlflow.read_rows(connection, 1, 2, None).points] == [1, 2]
        assert mlflow.read_rows(connection, 0, 10, "job-1").points == found.points[4:]
        assert [mlflow.last_row(connection, job) for job in (None, "job-1", "job-2")] == [5, 5, 0]


def test_rows_beyond_all_numbers_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    mlflow_store.log(path, "a", [("loss", 1, 0.5)])
    with closing(mlflow_store.connect(path)) as connection, connection:
        connection.execute("INSERT INTO metrics VALUES ('loss', 0.5, 9e999, 'a', 2, 0)")
        connection.execute("INSERT INTO metrics VALUES ('loss', 0.5, 1000, 'a', 9e999, 0)")
    with database.opened(tmp_path, path.name, os.getuid()) as connection:
        found = mlflow.read_rows(connection, 0, 10, None)
    assert ([point.step for point in found.points], found.skipped) == ([1], 2)
