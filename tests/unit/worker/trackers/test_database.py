"""Databases that a job writes to while they are read."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import mlflow_store
from worker.attempts import opening
from worker.trackers import database, mlflow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "own.db"
    mlflow_store.log(path, "a", [("loss", step, float(step)) for step in range(3)])
    return path


def read(path: Path) -> int:
    with database.opened(path.parent, path.name, os.getuid()) as connection:
        return len(mlflow.read_rows(connection, 0, 10, None).points)


def test_a_reader_never_keeps_the_job_from_writing(path: Path) -> None:
    reading = database.opened(path.parent, path.name, os.getuid())
    rows = reading.__enter__().execute("SELECT * FROM metrics")
    rows.fetchone()
    mlflow_store.log(path, "a", [("loss", 3, 3.0)])  # with no patience for a lock
    with pytest.raises(database.BusyError):
        reading.__exit__(None, None, None)
    assert read(path) == 4


def test_what_a_transaction_is_writing_is_not_read(path: Path) -> None:
    with closing(mlflow_store.connect(path)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("PRAGMA cache_spill = 1")
        for step in range(3, 3000):
            writer.execute("INSERT INTO metrics VALUES ('loss', 1, 1, 'a', ?, 0)", (step,))
        with pytest.raises(database.BusyError):
            read(path)
        writer.rollback()
    assert read(path) == 3


def test_it_leaves_nothing_and_writes_nothing(path: Path) -> None:
    content = path.read_bytes()
    with database.opened(path.parent, path.name, os.getuid()) as connection, pytest.raises(sqlite3.Error):
        connection.execute("DELETE FROM metrics")
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_links_and_others_files_are_left_alone(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        read(link)
    with pytest.raises(opening.StrangeFileError), database.opened(path.parent, path.name, os.getuid() + 1):
        pass


def test_a_file_that_is_put_in_its_place_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = path.with_name("other.db")
    mlflow_store.log(other, "b", [("secret", 1, 1.0)])
    connect = sqlite3.connect

    def late(*args: object, **options: object) -> sqlite3.Connection:
        os.replace(other, path)  # noqa: PTH105
        return connect(*args, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", late)
    with pytest.raises(opening.StrangeFileError, match="replaced"):
        read(path)
