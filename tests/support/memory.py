"""Where databases of a test lie: in memory, if there is room, where nothing waits for a disk."""

import shutil
from pathlib import Path

MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def place() -> Path:
    """Return the folder to make folders in."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if roomy else Path("/tmp")
