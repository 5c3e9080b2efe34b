"""Lines of logs: where they begin, and those that hold some words. No file is read as a whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

from service.db.engine import Database
from service.db.models import LogTime
from service.telemetry.logs import LogView
from torchyard import api

#: Blocks of an index at most, about.
MAX_BLOCKS = 8_192
#: Bytes of a block at least.
LEAST_BLOCK = 1024
#: A log whose times were not noted is cut so often, in bytes.
_REGULAR = 32 * 1024
#: Bytes that a search reads for one answer.
SEARCH_BYTES = 128 * 2**20
#: Characters of a line that a search shows.
SHOWN = 500
_READ = 4 * 2**20
#: A line of more bytes than this is taken for several.
_LINE = 256 * 1024
#: Words by which a line tells of an error.
ERRORS = (b"Traceback (most recent call last)", b"Error:", b"ERROR", b"Exception:", b"FATAL", b"Segmentation fault")

#: Reads so many bytes from an offset; fewer at the end.
Read = Callable[[int, int], bytes]


def times(db: Database, seen: LogView, rank: int) -> list[tuple[int, float]]:
    """Return the noted times of a log's bytes: offset and unix time in seconds."""
    query = select(LogTime.offset, LogTime.time_us).where(LogTime.attempt_id == seen.attempt_id, LogTime.rank == rank)
    with db.read() as tx:
        return [(row.offset, row.time_us / 1e6) for row in tx.execute(query.order_by(LogTime.offset))]


def index(read: Read, seen: LogView, start: int, noted: Sequence[tuple[int, float]]) -> api.LogIndex:
    """Return the blocks of a log from `start` on, which must begin a line; lines are counted from there.

    A block begins where a time was noted, or where the one before is long enough.
    """
    least = max(LEAST_BLOCK, (seen.size - start) // MAX_BLOCKS)
    ends = _line_ends(read, start, seen.size)
    wanted = _cuts(start, seen.size, least, [offset for offset, _ in noted])
    # Where the first line begins at or after each cut.
    first = np.unique(np.searchsorted(ends, wanted, side="left"))
    first = first[first < len(ends)]
    offsets = [start, *(ends[first] + 1).tolist()]
    lines = [0, *(first + 1).tolist()]
    note = np.searchsorted(np.array([offset for offset, _ in noted], np.int64), offsets, side="right") - 1
    blocks = [
        api.LogBlock(offset=offset, line=line, time=noted[place][1] if place >= 0 else None)
        for offset, line, place in zip(offsets, lines, note.tolist(), strict=True)
        if offset < seen.size
    ]
    open_line = seen.size > start and (not len(ends) or int(ends[-1]) + 1 < seen.size)
    return api.LogIndex(attempt=seen.attempt, size=seen.size, lines=len(ends) + open_line, blocks=blocks)


def _line_ends(read: Read, start: int, size: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    parts = [np.empty(0, np.int64)]
    for offset, data in _chunks(read, start, size):
        parts.append(np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).astype(np.int64) + offset)
    return np.concatenate(parts)


def _chunks(read: Read, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    while start < end and (data := read(start, min(_READ, end - start))):
        yield start, data
        start += len(data)


def _cuts(start: int, size: int, least: int, noted: Sequence[int]) -> list[int]:
    """Return where blocks may begin: each at a note, or `least` bytes after the one before if that is later."""
    cuts: list[int] = []
    before = start
    step = max(least, _REGULAR)
    regular = range(start + step, size, step)
    for offset in sorted({*regular, *noted}):
        if offset - before >= least and offset < size:
            cuts.append(offset - 1)
            before = offset
    return cuts


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """Words that lines are searched for, from a line that begins at `start`."""

    words: Sequence[bytes]
    """A line is found that holds one of them."""
    case: bool = False
    start: int = 0
    line: int = 0
    """Number of the line at `start`."""
    context: int = 0
    limit: int = 200


def search(read: Read, seen: LogView, query: LogQuery) -> api.LogSearch:
    """Return the lines that hold the words, in the next part of the log."""
    words = query.words if query.case else [word.lower() for word in query.words]
    stop = min(seen.size, query.start + SEARCH_BYTES)
    found: list[tuple[int, int]] = []
    offset, line, line_offset, count = query.start, query.line, query.start, 0
    while offset < stop:
        data = _whole_lines(read, offset, seen.size)
        if not data:
            break
        for begin, number in _hits(data if query.case else data.lower(), words):
            count += 1
            if len(found) < query.limit:
                found.append((offset + begin, line + number))
        if newlines := data.count(b"\n"):
            line, line_offset = line + newlines, offset + data.rindex(b"\n") + 1
        offset += len(data)
    return api.LogSearch(
        attempt=seen.attempt,
        count=count,
        matches=[_match(read, seen.size, at, number, query.context) for at, number in found],
        next=offset if offset < seen.size else None,
        line=line,
        line_offset=line_offset,
    )


def _whole_lines(read: Read, offset: int, size: int) -> bytes:
    """Read some bytes that end with a line, where one ends at all."""
    data = read(offset, _READ)
    newline = data.rfind(b"\n")
    return data if offset + len(data) >= size or newline < 0 else data[: newline + 1]


def _hits(data: bytes, words: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where a line begins that holds a word, and its number."""
    begins: set[int] = set()
    for word in words:
        place = data.find(word)
        while place >= 0:
            begins.add(data.rfind(b"\n", 0, place) + 1)
            end = data.find(b"\n", place)
            place = data.find(word, end + 1) if end >= 0 else -1
    counted = number = 0
    for begin in sorted(begins):
        number += data.count(b"\n", counted, begin)
        counted = begin
        yield begin, number


def _match(read: Read, size: int, offset: int, line: int, context: int) -> api.LogMatch:
    reach = max(0, offset - (SHOWN + 1) * context * 4)
    before = read(reach, offset - reach).split(b"\n")[-context - 1 : -1] if context and offset else []
    text, *after = read(offset, min(size - offset, _LINE)).split(b"\n", context + 1)[: context + 1]
    if after and after[-1] == b"":
        after.pop()
    return api.LogMatch(
        line=line,
        offset=offset,
        text=_shown(text),
        before=[_shown(each) for each in before],
        after=[_shown(each) for each in after],
    )


def _shown(line: bytes) -> str:
    return line[: SHOWN * 4].decode(errors="replace")[:SHOWN]
