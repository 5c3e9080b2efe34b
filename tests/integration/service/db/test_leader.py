"""The lead of one service among several on a database."""

import pytest

from service.db import leader
from service.db.engine import Database
from service.db.leader import Leader


def test_a_lead_that_was_not_taken_to_the_end_is_free_for_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock belongs to a connection, which must not go back to the pool with it."""
    if db.is_sqlite:
        assert Leader(db).leads()  # the only service
        return
    first = Leader(db)
    monkeypatch.setattr(leader, "SILENCE_S", 1e12)  # the database refuses it
    assert not first.leads()
    monkeypatch.undo()
    others = Database(db.url)
    second = Leader(others)
    try:
        assert second.leads()
    finally:
        second.resign()
        others.dispose()
