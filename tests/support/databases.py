"""What other programs do to the database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from sqlalchemy import make_url

from service.db.engine import Database


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
