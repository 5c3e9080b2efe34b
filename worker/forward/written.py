"""The files that a job has written, as both their forwarders read, hash and send them."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from torchyard.wire import Root
from worker.attempts import opening, tree
from worker.attempts.content import sha256_of
from worker.attempts.records import is_record
from worker.attempts.tree import BaselineManifest, JobFile, Key, Stamp
from worker.exceptions import RequestRefusedError
from worker.forward.blobs import BlobSender

#: Statuses that say that this file is bad, and not that the service does not know this worker now.
BAD_FILE: Final = frozenset({400, 413, 422})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class OutputLimits:
    """Limits of what goes to the store by itself, for each attempt on a node, and how often that is looked after."""

    files: int = 100_000
    total: int = 100 * 2**30
    every_s: float = 60.0

    def divide(self, found: Sequence[JobFile]) -> tuple[list[JobFile], list[JobFile]]:
        """Divide files into what goes to the store and what stays: the output folder's first, then the newest; one
        that does not fit any more leaves its place to those after it.
        """
        within: list[JobFile] = []
        beyond: list[JobFile] = []
        left = self.total
        for each in sorted(found, key=lambda each: (each.root is not Root.OUTPUT, -each.mtime_ns, each.size)):
            if len(within) < self.files and each.size <= left:
                within.append(each)
                left -= each.size
            else:
                beyond.append(each)
        return within, beyond


@dataclass(kw_only=True)
class WrittenFiles:
    """The files of one attempt."""

    folder: Path
    owner: int
    blobs: BlobSender
    #: Bytes that may be copied to the store; None: not told.
    room: int | None = None
    _hashes: dict[Key, tuple[Stamp, str]] = field(default_factory=dict)

    def hash(self, found: JobFile, manifest: BaselineManifest | None) -> str | None:
        """The hash of its content; None while somebody writes it. Raises OSError."""
        known = self._hashes.get(found.key)
        if known is not None and known[0] == found.stamp:
            return known[1]
        sha256 = manifest.hash_of(found) if manifest is not None else None
        if sha256 is None:
            with self.open(found) as descriptor:
                sha256, _ = sha256_of(descriptor)
                if not _is_same(descriptor, found):
                    return None
        self._hashes[found.key] = (found.stamp, sha256)
        return sha256

    def send(self, found: JobFile, sha256: str, *, ended: bool) -> bool:
        """Bring a file to the store, without copying it where that can be; False where the store refuses it or has no
        room for it, and where it is not what it was. Raises `UnavailableError`, `RequestRefusedError`, OSError.
        """
        try:
            with self.open(found) as descriptor:
                if not (ended and found.alone and self.blobs.link(descriptor, sha256, found.size)):
                    if not self._takes(found.size):
                        return False
                    self.blobs.send(descriptor, sha256, found.size)
                return ended or _is_same(descriptor, found)
        except RequestRefusedError as error:
            if error.status not in BAD_FILE:
                raise
            logger.warning("%s stays on the node: %s", found.inside, error)
        except OSError as error:
            if not is_lost(error):
                raise
        return False

    def _takes(self, size: int) -> bool:
        if self.room is None:
            return True
        if size > self.room:
            return False
        self.room -= size
        return True

    def open(self, found: JobFile) -> opening.Opened:
        """Its descriptor, opened folder by folder; of a link a file of where it leads. Raises OSError."""
        if found.link is not None:
            return _in_memory(found.link.encode())
        return opening.file_inside(self.folder, found.inside, self.owner)


@contextmanager
def _in_memory(data: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("link", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_same(descriptor: int, found: JobFile) -> bool:
    return found.link is not None or tree.stamp_of(os.fstat(descriptor)) == found.stamp


def is_lost(error: OSError) -> bool:
    """Return whether it will never be readable, or is there no more; anything else (a failing disk) may pass."""
    return opening.strange(error) or isinstance(error, FileNotFoundError) or error.errno is None


def has_saved(folder: Path, owner: int) -> bool:
    """Return whether a program that began with another attempt's files has written any but records. Reads no file."""
    manifest = tree.read(folder)
    if manifest is None or manifest.carried is None:
        return False
    return any(
        manifest.stamps.get(found.key) != found.stamp and not is_record(found.path)
        for found in tree.Walk(folder, owner, manifest).files()
    )


def is_work(found: JobFile, sha256: str, manifest: BaselineManifest | None) -> bool:
    """Return whether a program that began with the files of another attempt has saved something here itself."""
    carried = manifest.carried if manifest is not None else None
    return carried is not None and carried.get(found.key) != sha256 and not is_record(found.path)
