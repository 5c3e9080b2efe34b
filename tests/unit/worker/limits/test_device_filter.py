import struct

import pytest

from worker.limits import device_filter

CHARACTER, BLOCK = 2, 1


def answer(program: bytes, kind: int, major: int, minor: int) -> int:
    """What a program says of a device, as the kernel would run it."""
    context = struct.pack("=III", 1 << 16 | kind, major, minor)
    registers, at = [0] * 11, 0
    while True:
        code, operands, offset, immediate = struct.unpack_from("=BBhi", program, 8 * at)
        register, at = operands & 15, at + 1
        match code:
            case 0x61:
                (registers[register],) = struct.unpack_from("=I", context, offset)
            case 0x57:
                registers[register] &= immediate
            case 0xB7:
                registers[register] = immediate
            case 0x55 if registers[register] != immediate:
                at += offset
            case 0x95:
                return registers[0]


@pytest.mark.parametrize("denied", [[], [(195, 0)], [(195, 1), (195, 3), (7, 0)]])
def test_the_named_devices_alone_are_refused(denied: list[tuple[int, int]]) -> None:
    program = device_filter.program(denied)
    for major in (7, 195):
        for minor in range(5):
            assert answer(program, CHARACTER, major, minor) == ((major, minor) not in denied)
            assert answer(program, BLOCK, major, minor) == 1
