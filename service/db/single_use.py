"""Rows that count once: of several services that want one, one gets it."""

from typing import Any

from sqlalchemy import ColumnElement, Row, delete, exists, select

from service.db.engine import Database


def take(db: Database, model: Any, *where: ColumnElement[bool], returning: tuple[Any, ...]) -> Row[Any] | None:
    """Delete a row and return these columns of it; None if there is none.

    What is not there is only read for, so that guesses write nothing.
    """
    with db.read() as tx:
        if not tx.scalar(select(exists().where(*where))):
            return None
    with db.write() as tx:
        return tx.execute(delete(model).where(*where).returning(*returning)).one_or_none()
