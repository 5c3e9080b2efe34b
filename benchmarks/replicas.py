"""Reads of several services on one PostgreSQL: ``python -m benchmarks.replicas``.

Readers in processes of their own ask for the list of jobs and for single jobs, one request after the other, of one
service, then of two. Where services, database and readers share few cores these are the limit: so it also prints what a
request costs in CPU time, which must not grow with another service. Then the leader is killed, several times, and the
time is taken until another one leads.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from sqlalchemy import create_engine, text

from benchmarks import results
from benchmarks.figure import Figure, summarise
from benchmarks.http import KeepAliveConnection
from benchmarks.load import rate
from tests.support import live, postgres, redis

JOBS = 1_000
#: The job that a reader asks for is one of so many; each fourth request is for the list.
LIST_EVERY = 4
TAKEOVER_S = 5.0


@dataclass(frozen=True)
class Service:
    """A service that runs, and its administrator's token."""

    process: psutil.Process
    url: str
    token: str

    def connect(self) -> KeepAliveConnection:
        """Return a keep-alive connection that is signed in."""
        address = urlsplit(self.url)
        return KeepAliveConnection(str(address.hostname), int(address.port or 0), self.token)

    def leads(self) -> bool:
        """Tell whether it schedules, as its metrics have it."""
        connection = self.connect()
        try:
            return b"torchyard_leads 1.0" in connection.request("GET", "/metrics")[2]
        finally:
            connection.close()


@dataclass(frozen=True)
class Stores:
    """What all services share."""

    database: str
    postmaster: psutil.Process
    broker: str
    folder: Path

    @contextmanager
    def service(self, name: str) -> Iterator[Service]:
        """Run one more service until the end of the block, unless it is killed before."""
        home = self.folder / name
        home.mkdir()
        shared = {"TORCHYARD_DATA": str(self.folder / "data"), "TORCHYARD_REDIS_URL": self.broker}
        with live.process(self.database, home, **shared) as (process, url):
            yield Service(psutil.Process(process.pid), url, (home / "admin.token").read_text().strip())


@dataclass(frozen=True)
class Reads:
    """Requests a second, and the CPU milliseconds of services and database for each."""

    rate: float
    service_ms: float
    database_ms: float


def main() -> None:
    """Measure both and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--record", action="store_true", help="write the figures into results.json")
    options = parser.parse_args()
    with stores() as shared:
        figures = list(measured(shared, options.runs, options.readers, options.seconds))
    results.report("replicas", list(summarise(figures)), whole=options.record)


@contextmanager
def stores() -> Iterator[Stores]:
    """Run a PostgreSQL and a Redis of their own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp")))
        (folder / "data").mkdir()
        broker = stack.enter_context(redis.serve(folder))
        server = stack.enter_context(postgres.serve())
        url = stack.enter_context(server.database(migrated=True))
        yield Stores(url, _postmaster(url), broker.url, folder)


def _postmaster(url: str) -> psutil.Process:
    engine = create_engine(url)
    with engine.connect() as connection:
        backend = psutil.Process(connection.scalar(text("SELECT pg_backend_pid()")))
        postmaster = backend.parent()
    engine.dispose()
    assert postmaster is not None
    return postmaster


def measured(shared: Stores, runs: int, readers: int, seconds: float) -> Iterator[Figure]:
    """Yield the figures of each run: reads of one and of two in turn, then a takeover."""
    with shared.service("first") as first, shared.service("second") as second:
        numbers = _submit(first)
        for _ in range(runs):
            one, two = (_read(shared, each, numbers, readers, seconds) for each in ([first], [first, second]))
            yield from _of_reads(one, two)
    for run in range(runs):
        took = _takeover(shared, run)
        yield Figure(
            name="from the leader's death to another's lead", value=took, unit="s",
            target=f"< {TAKEOVER_S:.0f}", met=took < TAKEOVER_S,
        )  # fmt: skip


def _of_reads(one: Reads, two: Reads) -> Iterator[Figure]:
    against = "one service"
    yield Figure(name="reads of one service", value=one.rate, unit="/s")
    yield Figure(name="reads of two services", value=two.rate, unit="/s", baseline=one.rate, against=against)
    for name, value, baseline in (
        ("services", two.service_ms, one.service_ms),
        ("database", two.database_ms, one.database_ms),
    ):
        yield Figure(name=f"CPU of the {name} for a read", value=value, unit="ms", baseline=baseline, against=against)


def _submit(service: Service) -> list[int]:
    """Submit jobs that no node takes; return their numbers."""
    connection = service.connect()
    spec = {"name": "bench", "launcher": "none", "command": ["true"], "resources": {"gpus": 0}}
    return [int(connection.json("POST", "/api/v1/jobs", spec)["number"]) for _ in range(JOBS)]


def _read(shared: Stores, services: Sequence[Service], numbers: Sequence[int], readers: int, seconds: float) -> Reads:
    def work(reader: int, until: float) -> int:
        connection, chance, count = services[reader % len(services)].connect(), random.Random(reader), 0
        while time.time() < until:
            count += 1
            path = f"/{chance.choice(numbers)}" if count % LIST_EVERY else ""
            connection.json("GET", f"/api/v1/jobs{path}")
        return count

    before = _cpu_ms(shared, services)
    began = time.monotonic()
    found = rate(work, workers=readers, seconds=seconds)
    requests = found * (time.monotonic() - began)
    after = _cpu_ms(shared, services)
    return Reads(found, (after[0] - before[0]) / requests, (after[1] - before[1]) / requests)


def _cpu_ms(shared: Stores, services: Sequence[Service]) -> tuple[float, float]:
    """Return the CPU milliseconds of these services and of the database's processes so far."""
    database = [shared.postmaster, *shared.postmaster.children()]
    return sum(map(_used_ms, [each.process for each in services])), sum(map(_used_ms, database))


def _used_ms(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # a backend of the database that has ended
        return 0.0
    return 1000 * float(times.user + times.system)


def _takeover(shared: Stores, run: int) -> float:
    """Return the seconds from killing the leader to another's lead."""
    with shared.service(f"leader-{run}") as leader:
        _wait_for(leader)
        with shared.service(f"next-{run}") as other:
            leader.process.kill()
            killed = time.monotonic()
            _wait_for(other)
            return time.monotonic() - killed


def _wait_for(service: Service) -> None:
    while not service.leads():
        time.sleep(0.01)


if __name__ == "__main__":
    main()
