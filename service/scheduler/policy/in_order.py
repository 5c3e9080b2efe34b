"""Lazy sorting of rows: a decision tries few of them before none is feasible any more."""

from collections.abc import Callable, Iterator

import numpy as np

from service.scheduler.model.columns import Bools, Floats, Ints

#: Rows that are put in order at a time; the next time four times as many.
_CHUNK = 32
#: Rows that are yielded before infeasible ones are filtered out of the rest again.
_PIECE = 64


def in_order(rows: Ints, key: Floats, number: Floats, feasible: Callable[[Ints], Bools]) -> Iterator[int]:
    """Yield the rows by key and then by number; rows that are no longer `feasible` are dropped on the way."""
    size = _CHUNK
    while len(rows) > size:
        near = _first(key[rows], number[rows], size)
        yield from _ordered(rows[near], key, number, feasible)
        rows = rows[~near]
        rows = rows[feasible(rows)]
        size *= 4
    yield from _ordered(rows, key, number, feasible)


def _ordered(rows: Ints, key: Floats, number: Floats, feasible: Callable[[Ints], Bools]) -> Iterator[int]:
    rows = rows[np.lexsort((number[rows], key[rows]))]
    yield from rows[:_PIECE].tolist()
    for start in range(_PIECE, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        yield from piece[feasible(piece)].tolist()


def _first(key: Floats, number: Floats, size: int) -> Bools:
    """Return which are the first `size` of more rows, by key and then by number."""
    last = np.partition(key, size)[size]
    found: Bools = key < last
    equal = np.flatnonzero(key == last)
    wanted = size - int(found.sum())
    if wanted < len(equal):
        equal = equal[np.argpartition(number[equal], wanted)[:wanted]]
    found[equal] = True
    return found
