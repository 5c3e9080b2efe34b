"""A filter of devices for a group of cgroup version 2, which has no files for that: a program in the kernel (eBPF)."""

import ctypes
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
#: Number of the system call `bpf`, by machine.
_CALL: Final = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "s390x": 351}
_PROG_LOAD, _PROG_ATTACH = 5, 8
_PROG_TYPE_CGROUP_DEVICE, _ATTACH_CGROUP_DEVICE = 15, 6
_ALLOW_MULTI: Final = 2
#: Character devices in the low half of `access_type` of the kernel's `struct bpf_cgroup_dev_ctx`.
_CHARACTER: Final = 2
#: Opcodes: load 32 bits from memory, AND, set, jump unless equal, exit.
_LOAD, _AND, _SET, _JUMP_UNLESS, _EXIT = 0x61, 0x57, 0xB7, 0x55, 0x95


def program(denied: Sequence[tuple[int, int]]) -> bytes:
    """Instructions that refuse these character devices (major, minor) and allow all others."""
    return b"".join(_instructions(denied))


def _instructions(denied: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Registers: 1 the context, 2 the type of device, 3 its major, 4 its minor, 0 the answer."""
    for register, offset in ((2, 0), (3, 4), (4, 8)):
        yield _instruction(_LOAD, register, source=1, offset=offset)
    yield _instruction(_AND, 2, immediate=0xFFFF)
    yield _instruction(_JUMP_UNLESS, 2, offset=4 * len(denied), immediate=_CHARACTER)
    for major, minor in denied:
        yield _instruction(_JUMP_UNLESS, 3, offset=3, immediate=major)
        yield _instruction(_JUMP_UNLESS, 4, offset=2, immediate=minor)
        yield _instruction(_SET, 0, immediate=0)
        yield _instruction(_EXIT)
    yield _instruction(_SET, 0, immediate=1)
    yield _instruction(_EXIT)


def _instruction(code: int, register: int = 0, *, source: int = 0, offset: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("=BBhi", code, source << 4 | register, offset, immediate)


def attach(group: Path, denied: Sequence[tuple[int, int]]) -> None:
    """Refuse these character devices to every process of the group, for as long as it is there. Raises OSError."""
    code = ctypes.create_string_buffer(program(denied))
    licence = ctypes.create_string_buffer(b"GPL")
    count = (len(code) - 1) // 8
    loaded = _bpf(
        _PROG_LOAD,
        struct.pack(
            "=IIQQIIQII", _PROG_TYPE_CGROUP_DEVICE, count, ctypes.addressof(code), ctypes.addressof(licence), *(0,) * 5
        ),
    )
    try:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _bpf(_PROG_ATTACH, struct.pack("=IIII", folder, loaded, _ATTACH_CGROUP_DEVICE, _ALLOW_MULTI))
        finally:
            os.close(folder)
    finally:
        os.close(loaded)


def _bpf(command: int, attributes: bytes) -> int:
    call = _CALL.get(platform.machine())
    if call is None:
        raise OSError(f"the system call bpf is not known for {platform.machine()}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    answer = _LIBC.syscall(call, command, buffer, len(attributes))
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(answer)
