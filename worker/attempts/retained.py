"""Files of ended attempts that wait on their node for the next attempt of the same job.

``<worker home>/retained/<attempt id>/job/``: moved there once all of it is in the store, so that the next attempt need
not fetch it. Nothing is lost with them: they go when the service says that nobody waits for them, or when the disk runs
short.
"""

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.wire import CarriedFile
from worker.attempts import content, opening, removal, tree
from worker.attempts.folder import AttemptFolder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetainedFiles:
    """The retained files of one worker home."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "retained"

    def attempts(self) -> list[AttemptId]:
        """The attempts that have files here, the oldest first."""
        return sorted(AttemptId(path.name) for path in self.root.iterdir()) if self.root.is_dir() else []

    def retain(self, folder: AttemptFolder) -> bool:
        """Move an ended attempt here, without what is ours; only for whoever holds its lock. False: it cannot be."""
        here = self.root / folder.attempt_id
        try:
            self.root.mkdir(exist_ok=True)
            self.root.chmod(0o711)
            removal.remove(here)
            folder.move(here)
        except OSError as error:
            logger.warning("%s: its files are not retained: %s", folder.attempt_id, error)
            return False
        work = {Path(path).name for path in (layout.CODE, layout.OUTPUT)}
        with suppress(OSError), opening.folder(here, layout.JOB) as job:
            _remove(job, tree.OWN - work)
        with suppress(OSError), opening.folder(here, "") as at:
            _remove(at, [name for name in opening.names(at) if name != layout.JOB])
        return True

    def take(self, file: CarriedFile, target: Path) -> bool:
        """Put a file in its new place if it is here as it was recorded: by a second name if nothing else has it, else
        as a copy, whose blocks are shared where the file system can. False: it is to be fetched.
        """
        folder = AttemptFolder(self.root, file.attempt).path
        try:
            owner = (folder / layout.JOB).lstat().st_uid
            with opening.file_inside(folder, f"{tree.FOLDERS[file.root]}/{file.path}", owner) as descriptor:
                return _is_recorded(descriptor, file) and _put(descriptor, file, target)
        except FileNotFoundError:
            return False
        except OSError as error:
            logger.info("%s of %s is fetched: %s", file.path, file.attempt, error)
            return False

    def discard(self, attempt: AttemptId) -> None:
        """Remove the files of an attempt, if there are any."""
        removal.remove(AttemptFolder(self.root, attempt).path)

    def make_room(self, free: Callable[[], int], wanted: int) -> None:
        """Remove the oldest until so many bytes are free."""
        for attempt in self.attempts():
            if free() >= wanted:
                return
            logger.info("%s: its files are removed, since the disk runs short; the store has them", attempt)
            self.discard(attempt)


def _remove(at: int, names: Iterable[str]) -> None:
    """Remove files, and folders with all in them, from an open one; no link of a job's is followed."""
    for name in names:
        try:
            os.unlink(name, dir_fd=at)
        except IsADirectoryError:
            removal.remove_at(at, name)
        except OSError as error:
            logger.debug("%s stays: %s", name, error)


def _is_recorded(descriptor: int, file: CarriedFile) -> bool:
    return os.fstat(descriptor).st_size == file.size and content.sha256_of(descriptor) == (file.sha256, file.size)


def _put(descriptor: int, file: CarriedFile, target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    status = os.fstat(descriptor)
    try:
        # A file that the store has by a link is not the job's to write.
        if file.move and status.st_nlink == 1:
            content.second_name(descriptor, target)
        else:
            content.copy(descriptor, target, file.size)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    if os.fstat(descriptor).st_mtime_ns != status.st_mtime_ns:
        target.unlink()
        return False
    target.chmod(0o600 | (file.mode & 0o777))
    return True
