"""One service for an SQLite database: its writers, wake-ups and caches belong to one process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import make_url


class SecondServiceError(RuntimeError):
    """Another service has this SQLite database open, which one process serves alone."""


@contextmanager
def sole_service(url: str) -> Iterator[None]:
    """Hold an SQLite database for this process; SecondServiceError if another one has it. PostgreSQL takes several."""
    path = make_url(url).database
    if not url.startswith("sqlite") or not path or path == ":memory:":
        yield
        return
    lock = Path(f"{path}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise SecondServiceError(
                f"process {file.read().strip() or 'of another service'} serves the SQLite database {path} already, and "
                "SQLite takes one service: end that one, give this one a TORCHYARD_HOME of its own, or have both use "
                "one PostgreSQL (TORCHYARD_DATABASE_URL)."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
