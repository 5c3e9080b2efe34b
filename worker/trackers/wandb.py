"""Transaction logs of Weights & Biases (``run-<id>.wandb``), which it writes online and offline.

After a header of 7 bytes come blocks of 32 KiB, as in LevelDB's log: each chunk has a checksum, a length and a type,
and a record may take several chunks. A record is a message of `wandb_internal.proto`; its history is what was logged.
"""

import json
import struct
import zlib
from typing import Any, Final

from worker.trackers import protobuf
from worker.trackers.points import Chunk, Read, TrackerPoint, as_float, global_step, numbers, whole

_FILE_HEADER: Final = 7
_BLOCK: Final = 32768
_CHUNK: Final = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
#: What W&B itself logs beside the job's values.
_OWN: Final = ("_step", "_timestamp", "_runtime", "_wandb")


def read(chunk: Chunk, limit: int) -> Read:
    """Return what the whole records at the start of a chunk have logged, from at most `limit` pieces."""
    found = Read(end=chunk.at)
    place = _FILE_HEADER if chunk.at == 0 else chunk.at
    record: bytes | None = None
    for _ in range(limit):
        place = _skip_padding(place)
        at = place - chunk.at
        if at + _CHUNK.size > len(chunk.data):
            break
        checksum, length, kind = _CHUNK.unpack_from(chunk.data, at)
        end = at + _CHUNK.size + length
        if not _plausible(place, length, kind):
            place, record, found.skipped = _next_block(place), None, found.skipped + 1
            found.end = min(place, chunk.size)
            continue
        if end > len(chunk.data):
            break
        body = chunk.data[at + _CHUNK.size : end]
        place += _CHUNK.size + length
        if zlib.crc32(body, zlib.crc32(bytes([kind]))) != checksum:
            record, found.skipped, found.end = None, found.skipped + 1, place
            continue
        record = _joined(record, kind, body)
        if kind in {_FULL, _LAST}:
            _take(record, place, found)
            record, found.end = None, place
    if found.end == chunk.at:
        _step_over(chunk, place, found)
    return found


def _skip_padding(place: int) -> int:
    """A block's last bytes are empty when no header fits there."""
    left = _BLOCK - place % _BLOCK
    return place + left if left < _CHUNK.size else place


def _next_block(place: int) -> int:
    return place + _BLOCK - place % _BLOCK


def _plausible(place: int, length: int, kind: int) -> bool:
    return _FULL <= kind <= _LAST and place % _BLOCK + _CHUNK.size + length <= _BLOCK


def _joined(record: bytes | None, kind: int, body: bytes) -> bytes | None:
    """The record so far; None if its first piece is missing."""
    if kind in {_FULL, _FIRST}:
        return body
    return None if record is None else record + body


def _step_over(chunk: Chunk, place: int, found: Read) -> None:
    """A record beyond all sizes, or one that nobody will finish."""
    if chunk.ended and chunk.last and chunk.data:
        found.end, found.skipped = chunk.size, found.skipped + 1
    elif not chunk.last and place > chunk.at:
        found.end, found.skipped = place, found.skipped + 1


def _take(record: bytes | None, end: int, found: Read) -> None:
    if record is None:
        return
    try:
        logged, counter = _history(record)
        point = _point(logged, counter, end)
    except (ValueError, RecursionError):
        found.skipped += 1
        return
    if point.values:
        found.points.append(point)


def _point(logged: dict[str, Any], counter: int, end: int) -> TrackerPoint:
    own = {name: logged.pop(name, None) for name in _OWN}
    values = numbers(logged)
    time_s = own["_timestamp"] if isinstance(own["_timestamp"], int | float) else 0
    return TrackerPoint(end, global_step(values, counter), whole(as_float(time_s) * 1e6), values)


def _history(record: bytes) -> tuple[dict[str, Any], int]:
    """Return what a `Record` logged and at which step: 2 history, of which 1 items and 2 step."""
    logged, step = dict[str, Any](), 0
    for number, value in protobuf.fields(record):
        if number != 2:
            continue
        for inner, content in protobuf.fields(protobuf.message(value)):
            if inner == 1:
                name, given = _item(protobuf.message(content))
                logged[name] = given
            elif inner == 2:
                step = next(
                    (protobuf.signed(n) for field, n in protobuf.fields(protobuf.message(content)) if field == 1), 0
                )
    return logged, step


def _item(item: bytes) -> tuple[str, Any]:
    """Parse a `HistoryItem`: 1 key, or 2 the words of a nested one; 16 its value as JSON."""
    key, parts, value = "", list[str](), None
    for number, content in protobuf.fields(item):
        if number == 1:
            key = protobuf.text(content)
        elif number == 2:
            parts.append(protobuf.text(content))
        elif number == 16:
            value = json.loads(protobuf.text(content))
    return key or ".".join(parts), value
