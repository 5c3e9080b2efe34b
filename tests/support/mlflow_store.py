"""MLflow's tables in SQLite, as far as metrics need them."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250));
CREATE TABLE IF NOT EXISTS tags (
    key VARCHAR(250) NOT NULL, value VARCHAR(8000), run_uuid VARCHAR(32) NOT NULL, PRIMARY KEY (key, run_uuid)
);
CREATE TABLE IF NOT EXISTS metrics (
    key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL,
    step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
    PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan)
);
CREATE INDEX IF NOT EXISTS index_metrics_run_uuid ON metrics (run_uuid);
"""


def connect(path: Path) -> sqlite3.Connection:
    """The database, with its tables."""
    connection = sqlite3.connect(path, timeout=0)
    connection.executescript(_TABLES)
    return connection


def log(
    path: Path, run: str, points: Iterable[tuple[str, int, float]], *, job: str | None = None, at_ms: int = 1000
) -> None:
    """Logs points of a metric, step and value in one transaction, with a run that carries a job's tag."""
    with closing(connect(path)) as connection, connection:
        connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run, f"name of {run}"))
        if job is not None:
            connection.execute("INSERT OR IGNORE INTO tags VALUES ('torchyard.job', ?, ?)", (job, run))
        connection.executemany(
            "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
            [(key, 0 if value != value else value, at_ms, run, step, value != value) for key, step, value in points],
        )
