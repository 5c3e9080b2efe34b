"""CRC-32C (RFC 3720, appendix B.4), as TensorBoard's files mask it."""

from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xA282EAD8


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(map(_entry, range(256)))


def crc32c(data: bytes) -> int:
    """The checksum of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The checksum as it stands in a TFRecord."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
