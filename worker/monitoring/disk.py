"""Disk that an attempt takes, and its end once that is too much."""

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from torchyard.failures import fingerprints
from torchyard.quantities import format_size
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.background import BackgroundTask, Spawn
from worker.monitoring.user_disk import UserDisk

#: Seconds between two looks at least, and how many times as long as a look they rest.
EVERY_S: Final = 10.0
RESTS: Final = 50
#: Folders in folders that are looked into.
MAX_DEPTH: Final = 64
#: Bytes of `st_blocks`.
_BLOCK: Final = 512

logger = logging.getLogger(__name__)


def taken(folder: Path) -> int:
    """Bytes of disk below a folder of the worker's own, without following links; hard links count once, and what is
    mounted there does not.
    """
    try:
        device = folder.lstat().st_dev
    except FileNotFoundError:  # a job may remove its temporary folder
        return 0
    seen: set[tuple[int, int]] = set()
    total, pending = 0, [""]
    while pending:
        inside = pending.pop()
        for entry, status in _entries(folder, inside):
            if stat.S_ISDIR(status.st_mode) and status.st_dev != device:
                continue
            file = status.st_dev, status.st_ino
            total += 0 if file in seen else status.st_blocks * _BLOCK
            if stat.S_ISDIR(status.st_mode):
                pending += [f"{inside}{entry.name}/"] if inside.count("/") < MAX_DEPTH else []
            elif status.st_nlink > 1:
                seen.add(file)
    return total


def _entries(folder: Path, inside: str) -> Iterator[tuple["os.DirEntry[str]", os.stat_result]]:
    """List a folder; nothing if it is gone meanwhile."""
    with suppress(OSError), opening.folder(folder, inside) as at, os.scandir(at) as entries:
        for entry in entries:
            with suppress(OSError):  # gone meanwhile, or mounted by its user and closed to root: the others count
                yield entry, entry.stat(follow_symlinks=False)


class DiskWatch:
    """Looks in the background at the disk that one attempt of a user takes. `spawn` runs a function there."""

    def __init__(
        self,
        folder: AttemptFolder,
        limit: Callable[[], int | None],
        spawn: Spawn,
        of_users: UserDisk,
        user: str,
    ) -> None:
        self._folder = folder
        self._of_users = of_users
        self._user = user
        self._limit = limit
        self._task = BackgroundTask(spawn)
        self._due = 0.0

    def pump(self) -> bool:
        """Look if it is time to; there is never more to do at once."""
        limited = self._limit() is not None or self._of_users.limit() is not None
        if limited and self._task.idle and time.monotonic() >= self._due:
            self._task.start(self._look)
        return False

    def _look(self) -> None:
        began = time.monotonic()
        try:
            self.look()
        except OSError as error:
            logger.info("%s: its disk is looked at later: %s", self._folder.attempt_id, error)
        finally:
            now = time.monotonic()
            self._due = now + max(EVERY_S, RESTS * (now - began))

    def look(self) -> None:
        """Have the shim end the attempt if it takes too much, or another of its user's if all of them do.

        Raises OSError.
        """
        limit = self._limit()
        found = taken(self._folder.path) + taken(self._folder.temporary)
        if limit is not None and found > limit:
            words = f"took {format_size(found)} of disk, and a job may take {format_size(limit)} on this node"
            logger.warning("%s: %s", self._folder.attempt_id, words)
            self._folder.write_failure(fingerprints.DISK_LIMIT, words)
            found = 0  # it ends: nothing of its user's has to end for what it took
        if self._user:
            self._of_users.report(self._folder, self._user, found)
