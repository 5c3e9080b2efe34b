"""Compiled statements that outlive the engine that compiled them.

Each test has an engine of its own, and to compile the same statements for each took a fifth of such tests' time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine, event

from service.db import engine as engines

#: Statements of all tests together; those of one service are some hundred.
_STATEMENTS = 5000


@contextmanager
def shared() -> Iterator[None]:
    """Give all engines of `service.db.engine`, of one kind of database, the first one's dialect and its cache."""
    connected: dict[str, Engine] = {}

    def create_engine(url: str, **arguments: Any) -> Engine:
        made = sqlalchemy.create_engine(url, query_cache_size=_STATEMENTS, **arguments)
        kind = made.dialect.name
        if kind in connected:
            made.dialect, made._compiled_cache = connected[kind].dialect, connected[kind]._compiled_cache
        else:  # a dialect knows its database once it has met it

            @event.listens_for(made, "connect", once=True)
            def _keep(*_: Any) -> None:
                connected.setdefault(kind, made)

        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engines, "create_engine", create_engine)
        yield
