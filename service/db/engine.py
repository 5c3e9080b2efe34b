"""The database: one engine, read and write transactions, on SQLite or PostgreSQL."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from service.db import stored_bytes
from service.db.reserve import DiskReserve
from service.db.unit_of_work import UnitOfWork
from service.errors import DatabaseBusyError
from torchyard.ids import now_us

#: Seconds that a transaction waits for others at most: a client hears within five that it should come again.
WAIT_S = 4.0
#: How both ends of a connection to PostgreSQL notice within some ten seconds that the other is gone without a word, as
#: with a machine without power or a network that is cut: ours would wait a quarter of an hour for an answer, and the
#: database would keep the locks of a dead service's transaction for two hours.
_OURS = {
    "connect_timeout": 4,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SESSION = {
    "lock_timeout": round(WAIT_S * 1000),
    "tcp_keepalives_idle": 4,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
#: What is raised where a transaction cannot be had, or made: by the database, or while this process waits for a writer.
DATABASE_ERRORS = (SQLAlchemyError, DatabaseBusyError)
#: The write transactions of this thread use what is kept for a full disk.
_WITH_RESERVE: ContextVar[bool] = ContextVar("with_reserve", default=False)


class Database:
    """Transactions over one engine.

    SQLite has one writer: write transactions begin immediately, behind a process-wide lock (many threads that
    meet inside SQLite's own lock wait hundreds of times longer). PostgreSQL needs neither. A transaction that waits too
    long for others fails: with `DatabaseBusyError`, or with the database's own error.
    """

    def __init__(self, url: str, pool_size: int = 20) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        self.engine = _sqlite_engine(url, pool_size) if self.is_sqlite else _engine(url, pool_size)
        self._readers = self.engine if self.is_sqlite else _snapshots(self.engine)
        self._write_lock = threading.Lock()
        self._reserve: DiskReserve | None = None
        self._commits = 0
        self._committed: Callable[[UnitOfWork], object] | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: everything in it sees the same moment."""
        with self._readers.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    def version(self) -> int | None:
        """Return what changes with every commit, before its effects; None where other processes write as well."""
        return self._commits if self.is_sqlite else None

    def on_commit(self, committed: Callable[[UnitOfWork], object]) -> None:
        """Call a function with each unit of work that was committed, in the thread that did; one function at a time."""
        self._committed = committed

    @contextmanager
    def unit_of_work(self, now: int | None = None) -> Iterator[UnitOfWork]:
        """A write transaction at a time (µs): committed at the end of the block, rolled back on an exception. What it
        has recorded follows the commit.
        """
        with self._transaction() as tx:
            unit = UnitOfWork(tx, now_us() if now is None else now)
            yield unit
            stored_bytes.add(tx, unit.stored)
        if self._committed is not None:
            self._committed(unit)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The transaction of a unit of work, for those who need nothing else of it."""
        with self.unit_of_work() as unit:
            yield unit.tx

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        deadline = time.monotonic() + WAIT_S
        if not self._write_lock.acquire(timeout=WAIT_S):
            raise DatabaseBusyError
        try:
            with self._room(), self.engine.connect() as connection:
                _begin_immediately(connection, deadline)
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
                self._commits += 1
        finally:
            self._write_lock.release()

    def _room(self) -> AbstractContextManager[None]:
        return nullcontext() if self._reserve is None or not _WITH_RESERVE.get() else self._reserve.lent()

    @contextmanager
    def reserving(self) -> Iterator[None]:
        """Keep space for a full disk beside a SQLite database while the block lasts; PostgreSQL's disk is not ours."""
        if not self.is_sqlite or self.engine.url.database is None:
            yield
            return
        self._reserve = DiskReserve(Path(f"{self.engine.url.database}-reserve"))
        self._reserve.take()
        try:
            yield
        finally:
            self._reserve.release()
            self._reserve = None

    @contextmanager
    def with_reserve(self) -> Iterator[None]:
        """Let the write transactions of the block use that space: they make room, or stop what fills the disk."""
        before = _WITH_RESERVE.set(True)
        try:
            yield
        finally:
            _WITH_RESERVE.reset(before)

    def ping(self) -> None:
        """Ask the database for an answer; raise SQLAlchemy's error if there is none."""
        with self.read() as tx:
            tx.execute(text("SELECT 1"))

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _begin_immediately(connection: Connection, deadline: float) -> None:
    """Other programs that hold the file's lock are waited for until then."""
    left_ms = max(0, round((deadline - time.monotonic()) * 1000))
    connection.exec_driver_sql(f"PRAGMA busy_timeout={left_ms}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={round(WAIT_S * 1000)}")


def connection_options(url: str) -> dict[str, int]:
    """Return what PostgreSQL's client is told of a connection, but for what the URL says itself."""
    return {name: value for name, value in _OURS.items() if name not in make_url(url).query}


def _engine(url: str, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=10,
        pool_pre_ping=True,
        pool_use_lifo=True,
        connect_args=connection_options(url),
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in _SESSION.items()))
        connection.commit()

    return engine


def _snapshots(engine: Engine) -> Engine:
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _sqlite_engine(url: str, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=10,
        pool_use_lifo=True,  # each connection that is used in turn keeps two megabytes of pages
        connect_args={"check_same_thread": False, "timeout": WAIT_S},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # pysqlite must not begin transactions by itself
        for pragma in (f"busy_timeout={round(WAIT_S * 1000)}", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _switch_to_wal(connection)

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """The first switch of a new file fails at once, whatever the time-out, while another connection does the same."""
    deadline = time.monotonic() + 5
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
