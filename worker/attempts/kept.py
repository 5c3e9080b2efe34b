"""Files that stay on the node after their attempt, since they are too large for the store.

``<worker home>/kept/<attempt id>/<root>/<path>``: moved there, never copied, and the job user's own. They stay until
the service asks for them or says that their job was discarded, or until the job's next attempt takes them.
"""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchyard.ids import AttemptId
from torchyard.wire import Place, Root
from worker.attempts import opening, ownership, removal, tree

#: Where an attempt's files are gathered before its user may enter.
_STAGING: Final = ".moving-"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptFiles:
    """The kept files of one worker home."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "kept"

    def folder(self, attempt: AttemptId) -> Path:
        """Return the folder of an attempt's files; the id is one of `AttemptFolder`."""
        return self.root / attempt

    def attempts(self) -> list[AttemptId]:
        """The attempts that have files here."""
        if not self.root.is_dir():
            return []
        return sorted(AttemptId(path.name) for path in self.root.iterdir() if not path.name.startswith("."))

    def keep(self, attempt: AttemptId, folder: Path, owner: int, places: Iterable[Place]) -> None:
        """Move files of an ended attempt here; again after an interruption. Raises OSError."""
        staging, final = self.root / f"{_STAGING}{attempt}", self.folder(attempt)
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o711)
        if final.exists() and not staging.exists():
            final.rename(staging)
        staging.mkdir(exist_ok=True, mode=0o700)
        for place in places:
            try:
                _move(folder, place, staging)
            except OSError as error:
                if not (opening.strange(error) or isinstance(error, FileNotFoundError)):
                    raise
                logger.warning("%s: %s is not kept: %s", attempt, place.path, error)
        if owner != os.geteuid():
            ownership.give_folders(staging, owner, folder.joinpath(tree.FOLDERS[Root.JOB]).lstat().st_gid)
        staging.rename(final)

    def has(self, attempt: AttemptId, place: Place) -> bool:
        """Return whether `keep` has moved the file."""
        folders = (self.folder(attempt), self.root / f"{_STAGING}{attempt}")
        return any(opening.is_there(folder, f"{place.root}/{place.path}") for folder in folders)

    def open(self, attempt: AttemptId, place: Place) -> opening.Opened:
        """A kept file's descriptor. Raises OSError."""
        folder = self.folder(attempt)
        return opening.file_inside(folder, f"{place.root}/{place.path}", folder.lstat().st_uid)

    def remove(self, attempt: AttemptId, place: Place) -> None:
        """Remove one file, and the folders that are empty without it."""
        folder = self.folder(attempt)
        parent, name = os.path.split(f"{place.root}/{place.path}")
        try:
            with opening.folder(folder, parent) as at:
                os.unlink(name, dir_fd=at)
        except OSError as error:
            logger.warning("%s: %s is not removed: %s", attempt, place.path, error)
        _remove_empty(folder, parent)

    def discard(self, attempt: AttemptId) -> None:
        """Remove all files of an attempt."""
        removal.remove(self.folder(attempt))


def _move(folder: Path, place: Place, staging: Path) -> None:
    """Rename a file, folder by folder, without following a link: the user may be in either of them."""
    parent, name = os.path.split(f"{tree.FOLDERS[place.root]}/{place.path}")
    target, _ = os.path.split(f"{place.root}/{place.path}")
    with opening.folder(folder, parent) as source:
        os.stat(name, dir_fd=source, follow_symlinks=False)  # no folder is made for what is not there
        with opening.folder(staging, target, make=True) as at:
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=at)


def _remove_empty(folder: Path, inside: str) -> None:
    """Remove folders from the inside out until one is not empty."""
    try:
        while inside:
            inside, name = os.path.split(inside)
            with opening.folder(folder, inside) as at:
                os.rmdir(name, dir_fd=at)
        folder.rmdir()
    except OSError as error:
        logger.debug("%s stays: %s", folder, error)
