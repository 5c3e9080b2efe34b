"""Long lists of values, in pieces that one statement takes."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

#: SQLite takes 32,766 variables in a statement.
CHUNK = 2000


def chunks(items: Sequence[Item], size: int = CHUNK) -> Iterator[Sequence[Item]]:
    """The items, `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
