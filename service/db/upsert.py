"""Insert that may be repeated, in the words of either database."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

Insert = postgresql.Insert | sqlite.Insert


def insert(tx: Connection, model: Any) -> Insert:
    """An insert that knows ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    return sqlite.insert(model) if tx.dialect.name == "sqlite" else postgresql.insert(model)
