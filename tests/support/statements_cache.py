"""Compiled statements that outlive the engine that compiled them, and connections to PostgreSQL.

Each test has an engine of its own, and to compile the same statements for each took a fifth of such tests' time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine, event, make_url

from service.db import engine as engines
from tests.support.connections import KeptConnection

#: Statements of all tests together; those of one service are some hundred.
_STATEMENTS = 5000


@contextmanager
def shared() -> Iterator[None]:
    """Give all engines of `service.db.engine`, of one kind of database, the first one's dialect and its cache."""
    connected: dict[str, Engine] = {}

    def create_engine(url: str, **arguments: Any) -> Engine:
        kind = make_url(url).get_backend_name()
        known = kind in connected
        # A dialect knows its database once it has met it, so the others need not ask.
        made = sqlalchemy.create_engine(url, query_cache_size=_STATEMENTS, _initialize=not known, **arguments)
        if kind == "postgresql":

            @event.listens_for(made, "do_connect")
            def _connect(_dialect: Any, _record: Any, _words: Any, parameters: dict[str, Any]) -> KeptConnection:
                return KeptConnection.get(parameters)

        if known:
            made.dialect, made._compiled_cache = connected[kind].dialect, connected[kind]._compiled_cache
        else:

            @event.listens_for(made, "connect", once=True)
            def _keep(*_: Any) -> None:
                connected.setdefault(kind, made)

        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engines, "create_engine", create_engine)
        yield
