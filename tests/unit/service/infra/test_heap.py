"""What was freed goes back to the system, also from below what is still in use."""

import ctypes
from pathlib import Path

from service.infra import heap

#: Blocks that come from the heap, each of several pages; together far more than a test process frees by the way.
BLOCKS, SIZE = 1000, 100_000


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_free_pages_below_one_in_use_are_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    blocks = [ctypes.c_void_p(libc.malloc(SIZE)) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, SIZE)
    full = resident()
    for block in blocks[:-1]:
        libc.free(block)
    kept = resident()
    heap.give_back()
    freed = full - resident()
    libc.free(blocks[-1])
    assert full - kept < BLOCKS * SIZE // 4 < freed
