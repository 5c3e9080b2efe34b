"""Insert that may be repeated, in the words of either database."""

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

Insert = postgresql.Insert | sqlite.Insert
#: Makes an insert into a model's table, in the words of one database.
Into = Callable[[Any], Insert]


def insert(tx: Connection, model: Any) -> Insert:
    """An insert that knows ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    return _into(tx.dialect.name)(model)


def made_once(make: Callable[[Into], Insert]) -> Callable[[Connection], Insert]:
    """Decorate what makes an insert with bound parameters: it is made once for each database, not at each call."""

    @cache
    def made(dialect: str) -> Insert:
        return make(_into(dialect))

    return lambda tx: made(tx.dialect.name)


def _into(dialect: str) -> Into:
    return sqlite.insert if dialect == "sqlite" else postgresql.insert
