"""TensorBoard's event files, byte by byte."""

import struct
from collections.abc import Iterable

from torchyard.export.crc32c import masked


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    number &= 2**64 - 1
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes(written) + bytes([number])


def field(number: int, content: bytes) -> bytes:
    """A field that holds bytes, a string or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(event: bytes) -> bytes:
    """An event in the frame of a TFRecord."""
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked(length)) + event + struct.pack("<I", masked(event))


def file(events: Iterable[bytes]) -> bytes:
    """An event file, which begins with its version."""
    return record(_event(0, 0.0, field(3, b"brain.Event:2"))) + b"".join(map(record, events))


def scalar(tag: str, value: float, step: int, time_s: float = 1.0) -> bytes:
    """An event as `SummaryWriter.add_scalar` writes it."""
    return _event(step, time_s, field(5, field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))))


def tensor(tag: str, kind: int, content: bytes, step: int, plugin: str = "scalars") -> bytes:
    """An event with a tensor of some type (`DataType`)."""
    value = field(1, tag.encode()) + field(8, b"\x08" + varint(kind) + field(4, content))
    return _event(step, 1.0, field(5, field(1, value + field(9, field(1, field(1, plugin.encode()))))))


def _event(step: int, time_s: float, content: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time_s) + b"\x10" + varint(step) + content
