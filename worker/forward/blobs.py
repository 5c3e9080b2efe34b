"""Files on their way into the artifact store: placed in its inbox where the node can, uploaded where it cannot."""

import fcntl
import hashlib
import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from torchyard import wire
from worker.exceptions import RefusedError

_FICLONE: Final = 0x40049409
_CHUNK: Final = 2**20

logger = logging.getLogger(__name__)


class BlobStore(Protocol):
    """Where blobs go."""

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None: ...
    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None: ...


class BlobSender:
    """Brings open files into the store. `use_inbox` names the inbox once the service has told where it is."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._inbox: Path | None = None

    def use_inbox(self, inbox: str, probe: str) -> bool:
        """Places files in the inbox from now on if this node sees the very same folder and may write there."""
        folder = Path(inbox)
        try:
            same = bool(probe) and (folder / wire.INBOX_PROBE).read_text() == probe
        except (OSError, ValueError):
            same = False
        self._inbox = folder if same and os.access(folder, os.W_OK) else None
        return self._inbox is not None

    def send(self, descriptor: int, sha256: str, size: int) -> None:
        """Brings a file's first `size` bytes into the store. Raises `UnavailableError`, `RefusedError`, OSError."""
        if self._inbox is not None and self._place(self._inbox, descriptor, sha256, size):
            return
        self._store.upload_blob(sha256, size, read_chunks(descriptor, size))

    def link(self, descriptor: int, sha256: str, size: int) -> bool:
        """Gives an open file that nobody writes any more to the store as it is, by a second name in the inbox; False
        where it has to be copied: to another file system, or of another user than the service's. The first name is the
        caller's to remove. Raises `UnavailableError`.
        """
        if self._inbox is None:
            return False
        target = self._inbox / f"{sha256}.{secrets.token_hex(8)}"
        try:
            if not os.fstat(descriptor).st_uid == self._inbox.stat().st_uid == os.geteuid():
                return False  # the service would have to copy it all the same
            second_name(descriptor, target)
            self._store.blob_placed(sha256, target.name, size, linked=True)
        except (OSError, RefusedError) as error:
            logger.debug("%s cannot be linked to the inbox, so it is copied: %s", sha256, error)
            return False
        finally:
            target.unlink(missing_ok=True)
        return True

    def _place(self, inbox: Path, descriptor: int, sha256: str, size: int) -> bool:
        target = inbox / f"{sha256}.{secrets.token_hex(8)}"
        try:
            copy(descriptor, target, size)
            self._store.blob_placed(sha256, target.name, size)
        except (OSError, RefusedError) as error:
            logger.warning("%s cannot be placed in the inbox, so it is uploaded: %s", sha256, error)
            return False
        finally:
            target.unlink(missing_ok=True)
        return True


def second_name(descriptor: int, target: Path) -> None:
    """Gives an open file another name on the same file system. Raises OSError."""
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Given a folder, os.link follows the link in /proc, which leads to the file itself and to no name.
        os.link(f"/proc/self/fd/{descriptor}", target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def copy(descriptor: int, target: Path, size: int) -> None:
    """Copies an open file's first `size` bytes to a new file, sharing its blocks where the file system can."""
    out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.ioctl(out, _FICLONE, descriptor)
        except OSError:
            for chunk in read_chunks(descriptor, size):
                _write_all(out, chunk)
        os.ftruncate(out, size)
    finally:
        os.close(out)


def sha256_of(descriptor: int) -> tuple[str, int]:
    """SHA-256 and size of an open file's content."""
    digest = hashlib.sha256()
    position = 0
    while chunk := os.pread(descriptor, _CHUNK, position):
        digest.update(chunk)
        position += len(chunk)
    return digest.hexdigest(), position


def read_chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes of an open file, piece by piece; raises OSError if it shrank."""
    position = 0
    while position < size:
        chunk = os.pread(descriptor, min(_CHUNK, size - position), position)
        if not chunk:
            raise OSError(f"the file shrank from {size} to {position} bytes while it was read")
        position += len(chunk)
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
