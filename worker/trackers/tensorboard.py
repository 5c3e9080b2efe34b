"""Event files of TensorBoard: scalars of `SummaryWriter` and of whatever logs through it.

Each record is the length (8 bytes), its checksum, an `Event` message and its checksum; a writer only appends.
"""

import struct
from collections.abc import Iterator
from typing import Final

from torchyard.export.crc32c import masked
from worker.trackers import protobuf
from worker.trackers.points import Chunk, Read, TrackerPoint, whole

_LENGTH: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_AROUND: Final = _LENGTH.size + _CHECKSUM.size
#: Scalars are small: the checksum of more than this (an image) costs time for nothing.
_CHECKED: Final = 4096
#: `DataType` of a tensor, and how its content is packed.
_PACKED: Final = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
#: Field of `TensorProto` that holds values of a type one by one, and its width if that is fixed.
_LISTED: Final = {5: "<f", 6: "<d"}
_LISTED_WHOLE: Final = frozenset({7, 10})


def read(chunk: Chunk, limit: int) -> Read:
    """The scalars of the whole records at the start of a chunk, from at most `limit` records."""
    found = Read(end=chunk.at)
    data, at = chunk.data, 0
    for _ in range(limit):
        length = _length(data, at)
        if length is None:
            at = _unreadable(chunk, at, found)
            break
        if length < 0:
            at, found.skipped = _next_record(chunk, at + 1), found.skipped + 1
            continue
        end = at + _AROUND + length
        if chunk.at + end > chunk.size:
            at = _unreadable(chunk, at, found)
            break
        if end > len(data):
            # A record that is larger than any chunk holds no scalar.
            at = end if at == 0 else at
            break
        _take(data, at, length, chunk.at + end, found)
        at = end
    found.end = chunk.at + at
    return found


def _length(data: bytes, at: int) -> int | None:
    """Return the length of the message at a place; None while that is not whole, -1 if no record begins there."""
    if at + _LENGTH.size > len(data):
        return None
    length, checksum = _LENGTH.unpack_from(data, at)
    return int(length) if masked(data[at : at + 8]) == checksum else -1


def _next_record(chunk: Chunk, at: int) -> int:
    """The first place from `at` on where a record may begin: the start of one may be the end of the data."""
    data = chunk.data
    while at + _LENGTH.size <= len(data):
        length, _ = _LENGTH.unpack_from(data, at)
        if length <= chunk.size and _length(data, at) != -1:
            break
        at += 1
    return at


def _unreadable(chunk: Chunk, at: int, found: Read) -> int:
    """A torn record at the end of the file waits for its end while somebody writes."""
    if chunk.ended and chunk.last and at < len(chunk.data):
        found.skipped += 1
        return len(chunk.data)
    return at


def _take(data: bytes, at: int, length: int, end: int, found: Read) -> None:
    start = at + _LENGTH.size
    event = data[start : start + length]
    checksum = _CHECKSUM.unpack_from(data, start + length)[0]
    if length <= _CHECKED and masked(event) != checksum:
        found.skipped += 1
        return
    try:
        found.points.extend(_points(event, end))
    except ValueError:
        found.skipped += 1


def _points(event: bytes, end: int) -> Iterator[TrackerPoint]:
    """Parse an `Event`: 1 time, 2 step, 5 summary."""
    time_s, step, values = 0.0, 0, dict[str, float]()
    for number, value in protobuf.fields(event):
        if number == 1:
            time_s = protobuf.double(value)
        elif number == 2:
            step = protobuf.signed(value)
        elif number == 5:
            values |= _summary(protobuf.message(value))
    if values:
        yield TrackerPoint(end, step, whole(time_s * 1e6), values)


def _summary(summary: bytes) -> dict[str, float]:
    """Scalars by tag, of a `Summary`: 1 values."""
    found = (_scalar(protobuf.message(value)) for number, value in protobuf.fields(summary) if number == 1)
    return {tag: value for tag, value in found if value is not None}


def _scalar(content: bytes) -> tuple[str, float | None]:
    """Parse a `Summary.Value`: 1 tag, 2 simple value, 8 tensor, 9 metadata."""
    tag, scalar, tensor, plugin = "", None, b"", "scalars"
    for number, value in protobuf.fields(content):
        if number == 1:
            tag = protobuf.text(value)
        elif number == 2:
            scalar = protobuf.single(value)
        elif number == 8:
            tensor = protobuf.message(value)
        elif number == 9:
            plugin = _plugin(protobuf.message(value))
    if scalar is None and tensor and plugin == "scalars":
        scalar = _tensor(tensor)
    return tag, scalar


def _plugin(metadata: bytes) -> str:
    """Name of the plugin that shows it: `SummaryMetadata` 1, `PluginData` 1."""
    for number, value in protobuf.fields(metadata):
        if number == 1:
            names = [protobuf.text(name) for field, name in protobuf.fields(protobuf.message(value)) if field == 1]
            return names[-1] if names else ""
    return ""


def _tensor(tensor: bytes) -> float | None:
    """The only element of a `TensorProto`: 1 type, 4 content, 5 to 10 values; None if it has more, or is no number."""
    kind, content, listed = 0, b"", list[float]()
    for number, value in protobuf.fields(tensor):
        if number == 1:
            kind = protobuf.signed(value)
        elif number == 4:
            content = protobuf.message(value)
        elif number in _LISTED:
            listed += _unpacked(_LISTED[number], protobuf.message(value))
        elif number in _LISTED_WHOLE:
            listed += _varints(value)
    if content and kind in _PACKED:
        listed = _unpacked(_PACKED[kind], content)
    return listed[0] if len(listed) == 1 else None


def _unpacked(form: str, content: bytes) -> list[float]:
    try:
        return [number for (number,) in struct.iter_unpack(form, content)]
    except struct.error as error:
        raise ValueError(str(error)) from error


def _varints(value: protobuf.Value) -> list[float]:
    """Whole numbers, alone or packed."""
    if isinstance(value, int):
        return [protobuf.signed(value)]
    found, at = list[float](), 0
    while at < len(value):
        number, at = protobuf.varint(value, at)
        found.append(protobuf.signed(number))
    return found
