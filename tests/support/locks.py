"""Transactions that wait for one another."""

from concurrent.futures import Future
from typing import Any

from sqlalchemy import text

from service.db.engine import Database

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def is_waiting(db: Database, other: Future[Any]) -> bool:
    """Tell whether another transaction waits for the one under way, or is over; with SQLite all wait for it."""
    if db.is_sqlite or other.done():
        return True
    with db.read() as tx:
        return bool(tx.scalar(text(_WAITING)))
