"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import IO, Any


def fsync(path: str) -> None:
    """Bring a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: str, value: Any) -> None:
    """Write JSON by temporary name, fsync and rename."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    fsync(os.path.dirname(path) or ".")


def write_whole(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Have a file written by temporary name, and give it its own once it is whole; what was there stays until then."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    os.replace(temporary, path)


def read_json(path: str) -> Any:
    """Content of a JSON file, or None if it is absent or not JSON."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None
