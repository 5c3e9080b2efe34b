"""Schema of the database: the revision that it has, and its migration to the newest.

Alembic takes a tenth of an idle service's memory, so it is imported only where something is to be migrated.
"""

import ctypes
import multiprocessing
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import make_url

from service.db.engine import WAIT_S, Database

#: PostgreSQL advisory lock under which one service at a time migrates.
_MIGRATION_LOCK: Final = 0x79617264
_FILE: Final = re.compile(r"(\d{4})_\w+\.py")
_PR_SET_PDEATHSIG: Final = 1


class NewerSchemaError(RuntimeError):
    """The database was written by a newer TorchYard: install that version, or restore the backup made before it."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def knows(revision: str) -> bool:
    """Return whether this code can read tables of a revision, once it has migrated them."""
    return revision in _revisions()


@cache
def _revisions() -> frozenset[str]:
    """Revisions by the names of their files."""
    files = (resources.files("migrations") / "versions").iterdir()
    return frozenset(found[1] for file in files if (found := _FILE.fullmatch(file.name)))


@contextmanager
def migrating(url: str) -> Iterator[None]:
    """Bring a database to the newest revision meanwhile, in a process of its own, which ends with this one.

    What fails there is not told: `migrate` meets it again.
    """
    with _connected(url) as connection:
        newest = _is_newest(connection)
    if newest:
        yield
        return
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(url,), name="migration")
    child.start()
    try:
        yield
    finally:
        child.join()


def _in_child(url: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with suppress(Exception):
        migrate(url)


def migrate(url: str, revision: str = "head") -> None:
    """Bring a database to a revision (``base`` removes everything); raise `NewerSchemaError`."""
    with _connected(url) as connection, _alone(connection):
        if revision != "head" or not _is_newest(connection):
            _run(connection, revision)
            connection.commit()


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    _make_folder(url)
    database = Database(url, pool_size=1)
    try:
        with database.engine.connect() as connection:
            yield connection
    finally:
        database.dispose()


def _make_folder(url: str) -> None:
    path = make_url(url).database
    if url.startswith("sqlite") and path and path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
        return
    connection.execute(text("SET LOCAL lock_timeout = 0"))  # another service may take long to migrate
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    connection.execute(text(f"SET LOCAL lock_timeout = {round(WAIT_S * 1000)}"))
    yield


def _is_newest(connection: Connection) -> bool:
    """Return whether the newest revision is there; raise `NewerSchemaError` if one is that nobody knows."""
    if not inspect(connection).has_table("alembic_version"):
        return False
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if found is not None and not knows(found):
        raise NewerSchemaError
    return bool(found == max(_revisions()))


def _run(connection: Connection, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    if revision == "base":
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)
