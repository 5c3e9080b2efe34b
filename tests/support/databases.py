"""Databases of a test module's own, and what other programs do to a database."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from sqlalchemy import make_url

from service.db.engine import Database
from tests.support import postgres


@contextmanager
def locked(db: Database) -> Iterator[None]:
    """Another program is in the middle of a transaction that keeps all writers out."""
    url = make_url(db.url)
    if db.is_sqlite:
        with closing(sqlite3.connect(str(url.database), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as other:
        other.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
        yield


@contextmanager
def filled(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, fill: Callable[[Database], None]
) -> Iterator[Database]:
    """A database that is filled once, of the kind that the fixture's parameter names."""
    if request.param == "sqlite":
        migrated = request.getfixturevalue("migrated_file")
        url = f"sqlite:///{shutil.copy(migrated, factory.mktemp('filled') / 'x.db')}"
        with _filled(url, fill) as db:
            yield db
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    with server.database(migrated=True) as url, _filled(url, fill) as db:
        yield db


@contextmanager
def _filled(url: str, fill: Callable[[Database], None]) -> Iterator[Database]:
    db = Database(url)
    fill(db)
    yield db
    db.dispose()
