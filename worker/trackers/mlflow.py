"""Metric files of MLflow's file store: a line ``<milliseconds> <value> <step>`` a point, one file a metric."""

from worker.trackers.points import Chunk, Point, Read, whole


def read(chunk: Chunk, limit: int, name: str) -> Read:
    """The points of the whole lines at the start of a chunk, at most `limit` of them."""
    found = Read(end=chunk.at)
    at = 0
    for _ in range(limit):
        newline = chunk.data.find(b"\n", at)
        if newline < 0:
            at = _rest(chunk, at, found, name)
            break
        _take(chunk.data[at:newline], chunk.at + newline + 1, found, name)
        at = newline + 1
    found.end = chunk.at + at
    return found


def _rest(chunk: Chunk, at: int, found: Read, name: str) -> int:
    """A line without an end: torn, unless nobody writes any more; one as long as a chunk is none."""
    if at < len(chunk.data) and ((chunk.ended and chunk.last) or (at == 0 and not chunk.last)):
        _take(chunk.data[at:], chunk.at + len(chunk.data), found, name)
        return len(chunk.data)
    return at


def _take(line: bytes, end: int, found: Read, name: str) -> None:
    try:
        time_ms, value, *more = line.decode().split()
        point = Point(end, whole(int(more[0])) if more else 0, whole(int(time_ms) * 1000), {name: float(value)})
    except ValueError:
        found.skipped += 1
    else:
        found.points.append(point)
