"""Writing event files of TensorBoard: TFRecord frames around `Event` messages."""

import math
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from torchyard.export.crc32c import masked

#: What is not larger than this rounds to a finite number of 32 bits.
_LARGEST: Final = 3.4028235e38


class EventFile:
    """A new event file in a folder, for as long as a `with`; TensorBoard reads it as it grows."""

    def __init__(self, folder: Path, created_s: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(created_s)}.{socket.gethostname()}.{os.getpid()}.0"
        self._file = (folder / name).open("xb")
        self._file.write(record(_event(created_s, 0, _field(3, b"brain.Event:2"))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, points: Iterable[tuple[str, int, float, float]]) -> None:
        """Append scalars: tag, step, time in seconds and value."""
        for tag, step, time_s, value in points:
            self._file.write(record(scalar(tag, step, time_s, value)))
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()


def record(event: bytes) -> bytes:
    """An event in its frame."""
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked(length)) + event + struct.pack("<I", masked(event))


def scalar(tag: str, step: int, time_s: float, value: float) -> bytes:
    """An `Event` with a number of 32 bits: TensorBoard's fast loader shows no others."""
    content = _field(1, tag.encode()) + b"\x15" + struct.pack("<f", _single(value))
    return _event(time_s, step, _field(5, _field(1, content)))


def _single(value: float) -> float:
    """A number that 32 bits can hold; what is beyond them is infinite."""
    return math.copysign(math.inf, value) if math.isfinite(value) and abs(value) > _LARGEST else value


def _event(time_s: float, step: int, content: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time_s) + b"\x10" + _varint(step) + content


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)
