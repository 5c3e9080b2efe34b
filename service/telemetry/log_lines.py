"""Lines of logs: where they begin, and those that hold some words. No file is read as a whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select

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


def times(db: Database, seen: LogView, rank: int, start: int) -> list[tuple[int, float]]:
    """Return the noted times of a log's bytes from `start` on: offset and unix time in seconds."""
    of_log = (LogTime.attempt_id == seen.attempt_id, LogTime.rank == rank)
    last_before = select(func.max(LogTime.offset)).where(*of_log, LogTime.offset <= start).scalar_subquery()
    query = select(LogTime.offset, LogTime.time_us).where(*of_log, LogTime.offset >= func.coalesce(last_before, 0))
    with db.read() as tx:
        return [(row.offset, row.time_us / 1e6) for row in tx.execute(query.order_by(LogTime.offset))]


def index(read: Read, seen: LogView, start: int, noted: Sequence[tuple[int, float]]) -> api.LogIndex:
    """Return the blocks of a log from `start` on, which must begin a line; lines are counted from there.

    A block begins where a time was noted, or where the one before is long enough.
    """
    least = max(LEAST_BLOCK, (seen.size - start) // MAX_BLOCKS)
    found = _lines(read, start, seen.size, _cuts(start, seen.size, least, [offset for offset, _ in noted]))
    note = np.searchsorted(np.array([offset for offset, _ in noted], np.int64), found.offsets, side="right") - 1
    blocks = [
        api.LogBlock(offset=offset, line=line, time=noted[place][1] if place >= 0 else None)
        for offset, line, place in zip(found.offsets, found.numbers, note.tolist(), strict=True)
        if offset < seen.size
    ]
    return api.LogIndex(
        attempt=seen.attempt, size=seen.size, lines=found.ended + (found.end < seen.size), blocks=blocks
    )


@dataclass(kw_only=True)
class _Lines:
    """Lines of a log as far as it is read."""

    offsets: list[int]
    """Where the first line and the first after each cut begin."""
    numbers: list[int]
    """How many lines end before each of these."""
    end: int
    """Where the last line that is over ends."""
    ended: int = 0
    """How many are over."""


def _lines(read: Read, start: int, size: int, cuts: Sequence[int]) -> _Lines:
    """Count lines, and find where the first one begins after each cut.

    Only the ends beside a cut are looked up: to count the rest takes a third of the time of finding where each is.
    """
    found, due = _Lines(offsets=[start], numbers=[0], end=start), 0
    for offset, data in _chunks(read, start, size):
        newlines = np.frombuffer(data, np.uint8) == ord("\n")
        counted = 0
        while due < len(cuts) and (end := data.find(b"\n", max(0, cuts[due] - offset))) >= 0:
            due += 1
            if end >= counted:
                found.ended += int(np.count_nonzero(newlines[counted : end + 1]))
                counted = end + 1
                found.offsets.append(offset + counted)
                found.numbers.append(found.ended)
        found.ended += int(np.count_nonzero(newlines[counted:]))
        if (last := data.rfind(b"\n")) >= 0:
            found.end = offset + last + 1
    return found


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
