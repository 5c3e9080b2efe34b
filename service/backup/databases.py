"""Databases of both kinds as files: a copy of one moment, taken while the service writes."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, func, inspect, select, text
from sqlalchemy.engine import URL, make_url

from service.backup.exceptions import BackupError
from service.db.models import Blob, Installation, Job

#: File of the copy in a backup, by kind of database.
NAMES = {"sqlite": "torchyard.db", "postgresql": "torchyard.pgdump"}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Contents of a copy; `blobs` maps SHA-256 to size in bytes."""

    schema: str
    installation: str
    jobs: int
    blobs: dict[str, int]


def kind_of(url: str) -> str:
    """Return ``sqlite`` or ``postgresql``."""
    return make_url(url).get_backend_name()


def dump(url: str, target: Path) -> Contents:
    """Write a copy of the database as of one moment, and return what it holds; nobody who writes is held up."""
    return _dump_sqlite(make_url(url), target) if kind_of(url) == "sqlite" else _dump_postgres(make_url(url), target)


def _dump_sqlite(url: URL, target: Path) -> Contents:
    source = Path(str(url.database))
    if not source.is_file():
        raise BackupError(f"there is no database {source}: the service has never run here (see TORCHYARD_HOME)")
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as reading:
        reading.execute("PRAGMA busy_timeout=30000")
        with closing(sqlite3.connect(target)) as writing:
            reading.backup(writing)  # all pages at once: of one moment, and other connections go on writing
            writing.execute("PRAGMA journal_mode=DELETE")
    engine = create_engine(f"sqlite:///{target}")
    with _disposed(engine), engine.connect() as connection:
        return _contents(connection)


def _dump_postgres(url: URL, target: Path) -> Contents:
    program = _program("pg_dump")
    engine = create_engine(url, isolation_level="REPEATABLE READ")
    with _disposed(engine), engine.connect() as connection:
        snapshot = connection.scalar(text("SELECT pg_export_snapshot()"))
        words = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}"]
        _run([program, *words], url)
        target.chmod(0o600)
        return _contents(connection)


def _contents(connection: Connection) -> Contents:
    return Contents(
        schema=str(connection.scalar(text("SELECT version_num FROM alembic_version"))),
        installation=str(connection.scalar(select(Installation.value).where(Installation.key == "id"))),
        jobs=connection.scalar(select(func.count()).select_from(Job)) or 0,
        blobs={row.sha256: row.size for row in connection.execute(select(Blob.sha256, Blob.size))},
    )


def refuse_used(url: str) -> None:
    """Raise BackupError if a PostgreSQL database holds tables already."""
    if kind_of(url) == "sqlite":
        return
    engine = create_engine(url)
    with _disposed(engine):
        if inspect(engine).get_table_names():
            raise BackupError(
                f"the database {make_url(url).render_as_string()} is not empty: make another (`createdb`), and name it "
                "in TORCHYARD_DATABASE_URL"
            )


def files_of(url: str) -> list[Path]:
    """Return the files of an SQLite database that are there: its log beside it would be played into another one."""
    if kind_of(url) != "sqlite":
        return []
    target = str(make_url(url).database)
    return [path for end in ("", "-wal", "-shm") if (path := Path(f"{target}{end}")).is_file()]


def load(copy: Path, url: str) -> None:
    """Fill an empty database with a copy."""
    if kind_of(url) == "sqlite":
        target = Path(str(make_url(url).database))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(copy, target)
        target.chmod(0o600)
        return
    options = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    name = make_url(url).database
    _run([_program("pg_restore"), *options, f"--dbname={name}", str(copy)], make_url(url))


def _run(command: list[str], url: URL) -> None:
    """Run a program of PostgreSQL; the address goes by its environment, which other accounts cannot read."""
    done = subprocess.run(command, env=_environment(url), capture_output=True, text=True, check=False)
    if done.returncode:
        name = Path(command[0]).name
        older = "version mismatch" in done.stderr
        mend = "; install PostgreSQL's client programs of the server's version or newer" if older else ""
        raise BackupError(f"{name} failed: {done.stderr.strip()}{mend}")


def _environment(url: URL) -> dict[str, str]:
    host = url.host or url.query.get("host")
    given = {
        "PGHOST": host,
        "PGPORT": url.port,
        "PGUSER": url.username,
        "PGPASSWORD": url.password,
        "PGDATABASE": url.database,
    }
    return {**os.environ, **{name: str(value) for name, value in given.items() if value}}


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BackupError(
            f"{name} is not here: install PostgreSQL's client programs, of the server's version or newer, such as "
            "`apt-get install postgresql-client`"
        )
    return found


@contextmanager
def _disposed(engine: Engine) -> Iterator[None]:
    try:
        yield
    finally:
        engine.dispose()
