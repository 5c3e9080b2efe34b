"""Space on the disk of a SQLite database that is kept for transactions that must get through when the disk is full."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchyard.errnos import NO_SPACE

#: Twice what the WAL grows to before SQLite brings it into the database.
SIZE = 8 * 2**20
#: What is left of a full disk is taken in such steps.
STEP = SIZE // 32

_log = logging.getLogger(__name__)


class DiskReserve:
    """A file of nothing, which is taken away for a transaction on a full disk and made again after it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Free the space for the block if the disk has less; what is free afterwards is taken again."""
        if shutil.disk_usage(self._path.parent).free < SIZE:
            self.release()
        try:
            yield
        finally:
            self.take()

    def take(self) -> None:
        """Take the space, or of a disk that is nearly full a part of it. A disk that gives none is told in the log."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _log.warning("no space is kept for a full disk: %s", error)
            return
        try:
            _grow(descriptor)
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Give the space back."""
        self._path.unlink(missing_ok=True)


def _grow(descriptor: int) -> None:
    held = os.fstat(descriptor).st_size
    for size in range(SIZE, 0, -STEP):
        if size <= held:
            return
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            os.ftruncate(descriptor, held)
            if error.errno not in NO_SPACE:
                _log.warning("no space is kept for a full disk: %s", error)
                return
        else:
            return
