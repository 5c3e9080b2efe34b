"""Cells of CSV files as numbers; every error names line, column and how to correct it."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from service.simulator.exceptions import TraceError

_SECOND = 1_000_000
#: More than any box has, and longer than any training takes.
MAX_GPUS = 100_000
MAX_SECONDS = 10**10

Cells = Mapping[str, str]


def rows(file: Iterable[str], needed: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[int, Cells]]:
    """Yield the number of each line below the first, and its cells by column; an absent one is empty.

    Raises TraceError if a needed column is not there.
    """
    found = csv.DictReader(file, skipinitialspace=True)
    names = [name.strip() for name in found.fieldnames or []]
    if missing := [name for name in needed if name not in names]:
        raise TraceError(
            f"line 1: no column {', '.join(missing)}; the first line names the columns: {','.join(columns)}"
        )
    found.fieldnames = names
    for row in found:
        yield found.line_num, {name: (row.get(name) or "").strip() for name in columns}


def seconds(line: int, column: str, text: str, least: float = 0) -> int:
    """Return a time in microseconds that is written in seconds."""
    value = number(text)
    if not least <= value <= MAX_SECONDS:
        what = "seconds" if least < 0 else "seconds, 0 or more"
        raise TraceError(f"line {line}, {column}: {shown(text)} is not a number of {what}")
    return round(value * _SECOND)


def flag(line: int, column: str, text: str, *, default: bool) -> bool:
    """Return whether a flag is set."""
    if text not in {"", "0", "1"}:
        raise TraceError(f"line {line}, {column}: {shown(text)} is neither 0 nor 1")
    return default if not text else text == "1"


def number(text: str) -> float:
    """Return the number that is written; NaN if none is."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def shown(text: str) -> str:
    """Return a cell as a message quotes it."""
    return repr(text) if text else "nothing"
