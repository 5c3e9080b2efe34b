"""What a pass of the scheduler costs, as the service itself counts it (``/metrics``)."""

import sqlite3
import time
from collections.abc import Iterator

from benchmarks.figure import Figure
from benchmarks.http import Connection
from benchmarks.stack import Stack

QUEUED = 10_000
_SECONDS = "torchyard_scheduler_pass_seconds_"


def passes(stack: Stack) -> Iterator[Figure]:
    """A pass while both slots are held: with an empty queue, and with 10,000 jobs that cannot start."""
    connection = stack.connect()
    for _ in range(2):
        _until_running(connection, stack.submit(connection, command=["sleep", "600"]))
    empty = _pass_ms(connection)
    _multiply(stack, stack.submit(connection, command=["true"]))
    _pass_ms(connection, count=1)  # each job is read once; later passes remember it
    full = _pass_ms(connection)
    yield Figure(name="scheduling pass, empty queue", value=empty, unit="ms")
    yield Figure(
        name="scheduling pass, 10,000 queued", value=full, unit="ms", baseline=empty, against="empty pass"
    )  # fmt: skip


def _until_running(connection: Connection, job: str) -> None:
    while connection.json("GET", f"/api/v1/jobs/{job}")["state"] != "running":
        time.sleep(0.05)


def _pass_ms(connection: Connection, count: int = 5) -> float:
    """The mean of the next passes, of which there is one a second while nothing happens."""
    before = after = _counted(connection)
    while after["count"] < before["count"] + count:
        time.sleep(0.1)
        after = _counted(connection)
    return (after["sum"] - before["sum"]) / (after["count"] - before["count"]) * 1000


def _counted(connection: Connection) -> dict[str, float]:
    _, _, text = connection.request("GET", "/metrics")
    pairs = (line.split() for line in text.decode().splitlines() if line.startswith(_SECONDS))
    return {name.removeprefix(_SECONDS): float(value) for name, value in pairs if "{" not in name}


def _multiply(stack: Stack, job: str) -> None:
    """Copies of a queued job, straight into the database: to submit them all would take most of a minute."""
    with sqlite3.connect(stack.home / "service" / "torchyard.db", timeout=30) as database:
        names = [f'"{row[1]}"' for row in database.execute("PRAGMA table_info(jobs)")]
        changed = {'"id"': "id || '-' || n", '"number"': "number + n"}
        chosen = ", ".join(changed.get(name, name) for name in names)
        database.execute(
            f"WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < {QUEUED - 1}) "
            f"INSERT INTO jobs ({', '.join(names)}) SELECT {chosen} FROM jobs, copies WHERE id = ?",
            (job,),
        )
    database.close()
