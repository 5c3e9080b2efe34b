"""What a database is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from service.db.engine import Database


@contextmanager
def asked(db: Database) -> Iterator[list[str]]:
    """The statements of the block, each with its parameters, in order."""
    told: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        told.append(f"{statement} {parameters}")

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield told
    finally:
        event.remove(db.engine, "before_cursor_execute", note)


def first(told: list[str], start: str, words: str = "") -> int:
    """The place of the first statement that begins so and has the words; an error if there is none."""
    return next(place for place, each in enumerate(told) if each.startswith(start) and words in each)
