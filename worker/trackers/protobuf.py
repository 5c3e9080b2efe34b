"""Protocol buffers on the wire (protobuf.dev, "Encoding"): fields by number, without a schema."""

import struct
from collections.abc import Iterator
from typing import Final

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_WIDTH: Final = {_FIXED64: 8, _FIXED32: 4}

#: A number, or bytes: of a fixed width, a string, or a message.
Value = int | bytes


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field, in order. Raises ValueError for what is no message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = varint(message, at)
            yield number, value
            continue
        width = _WIDTH.get(kind)
        if kind == _BYTES:
            width, at = varint(message, at)
        if width is None or at + width > len(message):
            raise ValueError("not a protobuf message")
        yield number, message[at : at + width]
        at += width


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it. Raises ValueError."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("not a protobuf number")
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
        shift += 7


def message(value: Value) -> bytes:
    """The value of a field that holds bytes. Raises ValueError."""
    if isinstance(value, int):
        raise ValueError("a number in the place of a message")
    return value


def text(value: Value) -> str:
    """The value of a field that holds a string. Raises ValueError."""
    return message(value).decode()


def signed(value: Value) -> int:
    """The value of an int64. Raises ValueError."""
    if not isinstance(value, int):
        raise ValueError("bytes in the place of a number")
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def double(value: Value) -> float:
    """The value of a double. Raises ValueError."""
    return _unpacked("<d", value)


def single(value: Value) -> float:
    """The value of a float. Raises ValueError."""
    return _unpacked("<f", value)


def _unpacked(form: str, value: Value) -> float:
    try:
        number: float = struct.unpack(form, message(value))[0]
    except struct.error as error:
        raise ValueError(str(error)) from error
    return number
