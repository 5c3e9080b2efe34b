"""`python -m benchmarks.long_charts`: how long a chart of one long series takes, whole and in parts, and its rollups.

The points are written to a database of SQLite as ingest would, then rolled up as the service does it.
"""

import argparse
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import select

from benchmarks import history, results
from benchmarks.figure import Figure, summarise
from service.controllers.rollups import AT_ONCE, roll_up
from service.db import schema
from service.db.engine import Database
from service.db.models import MetricSeries
from service.telemetry import metrics
from torchyard.ids import JobId

#: Parts of the range that a chart shows.
PARTS = (1, 2, 5, 10, 20, 50, 100, 1000)
BUCKETS = 1_000
TIMES = 5
_START_US = 1_700_000_000_000_000


def _rows(series: int, points: int) -> Iterator[tuple[int, int, int, int, float, int]]:
    noise = random.Random(1)
    for step in range(points):
        yield series, step, step, _START_US + step * 1000, 2.5 / (1 + step / 9e5) + noise.random(), 0


def _fill(db: Database, path: Path, points: int) -> tuple[JobId, int, str]:
    """Make a job with one long series; return its id, and the series' id and name."""
    history.fill(db, 1, 0)
    with db.read() as tx:
        query = select(MetricSeries.job_id, MetricSeries.id, MetricSeries.name).limit(1)
        job, series, name = tx.execute(query).one()
    with sqlite3.connect(path, timeout=60) as connection:
        connection.execute("DELETE FROM metric_points")
        connection.executemany("INSERT INTO metric_points VALUES (?, ?, ?, ?, ?, ?)", _rows(series, points))
        connection.execute("UPDATE metric_series SET unrolled = ? WHERE id = ?", (points, series))
    return job, series, name


def _measure(db: Database, path: Path, points: int, *, rolled: bool) -> Iterator[Figure]:
    job, series, name = _fill(db, path, points)
    if rolled:
        before, began = _size(path), time.process_time()
        while roll_up(db, series) == AT_ONCE:
            pass
        millions = points / 1e6
        yield Figure(name="rolled up, a million points", value=(time.process_time() - began) / millions, unit="CPU s")
        yield Figure(name="rollups, to the rest of the database", value=100 * (_size(path) / before - 1), unit="%")
    for part in PARTS:
        within = metrics.MetricsRange(start=points // 3, end=points // 3 + points // part) if part > 1 else None
        query = metrics.MetricsQuery(names=frozenset({name}), buckets=BUCKETS, range=within or metrics.MetricsRange())
        took = _timed(partial(metrics.of_job, db, job, query, None))
        label = f"chart of {points:,} points" if part == 1 else f"chart of 1/{part} of them"
        yield Figure(name=label, value=took, unit="CPU ms", target="< 50", met=took < 50)
    yield Figure(name="memory at most", value=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, unit="MiB")


def _size(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("PRAGMA page_count").fetchone()[0])


def _timed(ask: Callable[[], object]) -> float:
    """Return the median of the thread's CPU time in milliseconds."""
    took = []
    for _ in range(TIMES):
        began = time.thread_time()
        ask()
        took.append(1000 * (time.thread_time() - began))
    return statistics.median(took)


def main() -> None:
    """Make the series, time its charts and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_charts")
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--points-alone", action="store_true", help="without rollups, as a chart was read before them")
    parser.add_argument("--record", action="store_true", help="write the figures into results.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        path = Path(folder) / "bench.db"
        url = f"sqlite:///{path}"
        schema.migrate(url)
        db = Database(url)
        try:
            rows = list(summarise(_measure(db, path, options.points, rolled=not options.points_alone)))
        finally:
            db.dispose()
    results.report("long charts", rows, whole=options.record)


if __name__ == "__main__":
    main()
