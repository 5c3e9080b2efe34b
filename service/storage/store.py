"""The artifact store: files named by their SHA-256.

    artifacts/
        blobs/ab/abcd…        read-only files
        inbox/                where a worker on the same file system places files, and uploads grow
            probe             random words: who reads them here shares the file system
        logs/<attempt>/       one file for each rank

Nothing a client sends becomes a path: hashes and names are matched against the only form they may have.
"""

import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO

from service import errors
from torchyard.ids import AttemptId
from torchyard.wire import INBOX_PROBE

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLACED = re.compile(r"([0-9a-f]{64})\.[0-9A-Za-z_-]{1,64}")
_UPLOAD = ".upload-"
_CHUNK = 2**20


def is_hash(text: str) -> bool:
    """Return true for a SHA-256 in lower-case hex."""
    return _SHA256.fullmatch(text) is not None


def sync_folder(folder: Path) -> None:
    """Make a rename or creation in the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Upload:
    """A blob that grows in the inbox; it enters the store only whole, fsynced and with the right hash."""

    def __init__(self, store: "BlobStore", sha256: str, limit: int | None) -> None:
        self._store = store
        self.sha256 = sha256
        self._limit = limit
        self._digest = hashlib.sha256()
        self._path = store.inbox / f"{_UPLOAD}{secrets.token_hex(8)}"
        self._file: IO[bytes] = self._path.open("xb", buffering=0)
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append data; raise `errors.TooLargeError` beyond the limit."""
        self.size += len(data)
        if self._limit is not None and self.size > self._limit:
            raise errors.TooLargeError(self._limit)
        self._digest.update(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def commit(self) -> int:
        """Move the file into the store and return its size; raise `errors.WrongHashError`."""
        if self._digest.hexdigest() != self.sha256:
            raise errors.WrongHashError(self.sha256, self._digest.hexdigest())
        os.fsync(self._file.fileno())
        self._file.close()
        self._store.move_in(self._path, self.sha256)
        return self.size

    def discard(self) -> None:
        """Remove what was written; harmless after `commit`."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class BlobStore:
    """Content-addressed files below one folder; `floor` bytes of its file system are to stay free."""

    def __init__(self, root: Path, floor: int = 0) -> None:
        self.root = root
        self.floor = floor
        self.blobs = root / "blobs"
        self.inbox = root / "inbox"
        self.logs = root / "logs"
        for folder in (self.blobs, self.inbox, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        self.probe = self._read_or_make_probe()

    def _read_or_make_probe(self) -> str:
        path = self.inbox / INBOX_PROBE
        with suppress(FileNotFoundError):
            return path.read_text()
        path.write_text(secrets.token_hex(16))
        return path.read_text()

    def path(self, sha256: str) -> Path:
        """Path of a blob, whether it is there or not; raises `errors.NotAHashError`."""
        if not is_hash(sha256):
            raise errors.NotAHashError(sha256)
        return self.blobs / sha256[:2] / sha256

    def log_path(self, attempt_id: AttemptId, rank: int) -> Path:
        """The file of a rank's log; `attempt_id` comes from the database, never from a client."""
        return self.logs / attempt_id / f"{rank}.log"

    def has(self, sha256: str) -> bool:
        """Return true if the blob's file is here."""
        return self.path(sha256).is_file()

    @contextmanager
    def upload(self, sha256: str, limit: int | None = None) -> Iterator[Upload]:
        """A streamed write of at most `limit` bytes; what is not committed is discarded."""
        self.path(sha256)
        upload = Upload(self, sha256, limit)
        try:
            yield upload
        finally:
            upload.discard()

    def take_over(self, name: str, sha256: str, size: int, *, linked: bool = False) -> None:
        """Move a file that a worker has placed in the inbox into the store, once its size and hash are checked.

        `linked`: a file of the service's own user may have a second name, which the worker is about to remove.
        Raises `errors.NotPlacedError` for a name of another form, a link, a special or missing file, and
        `errors.WrongHashError`; the file is then removed.
        """
        match = _PLACED.fullmatch(name)
        if match is None or match.group(1) != sha256:
            raise errors.NotPlacedError(name)
        path = self.inbox / name
        try:
            with _open_placed(path, size, linked=linked) as file:
                if os.fstat(file.fileno()).st_uid == os.geteuid():
                    _check(file, sha256)
                    self.move_in(path, sha256)
                else:
                    self._copy_in(file, sha256)
        finally:
            path.unlink(missing_ok=True)

    def _copy_in(self, file: IO[bytes], sha256: str) -> None:
        """Copy another user's file: it stays writable to that user, so only its content is taken."""
        with self.upload(sha256) as upload:
            while chunk := file.read(_CHUNK):
                upload.write(chunk)
            upload.commit()

    def move_in(self, path: Path, sha256: str) -> None:
        """Rename a checked file into its place, read-only."""
        target = self.path(sha256)
        if not target.parent.is_dir():
            target.parent.mkdir(exist_ok=True)
            sync_folder(self.blobs)
        path.chmod(0o444)
        path.replace(target)
        sync_folder(target.parent)

    def delete(self, sha256: str) -> None:
        """Remove a blob; one that is gone already is fine."""
        self.path(sha256).unlink(missing_ok=True)

    def delete_logs(self, attempt_id: AttemptId) -> None:
        """Remove all logs of an attempt; harmless when there are none."""
        shutil.rmtree(self.logs / attempt_id, ignore_errors=True)

    def free(self) -> int:
        """Free bytes of the file system."""
        return shutil.disk_usage(self.root).free

    def room(self) -> int:
        """Bytes that may still be stored before the floor is reached."""
        return max(0, self.free() - self.floor)

    def check_room(self) -> None:
        """Raise `errors.NoRoomError` when the file system is nearly full."""
        free = self.free()
        if free < self.floor:
            raise errors.NoRoomError(free)

    def sweep_inbox(self, before_s: float) -> int:
        """Remove uploads and placed files that nobody has touched since a unix time; return how many."""
        swept = 0
        for entry in list(self.inbox.iterdir()):
            with suppress(FileNotFoundError):
                if entry.name != INBOX_PROBE and entry.lstat().st_mtime < before_s and not entry.is_dir():
                    entry.unlink()
                    swept += 1
        return swept


def _open_placed(path: Path, size: int, *, linked: bool) -> FileIO:
    """Open a regular file with one name (or two), following no link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise errors.NotPlacedError(path.name) from error
    facts = os.fstat(descriptor)
    # Through a second name somebody else could write into the store's file later.
    names = 2 if linked and facts.st_uid == os.geteuid() else 1
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > names or facts.st_size != size:
        os.close(descriptor)
        raise errors.NotPlacedError(path.name)
    return os.fdopen(descriptor, "rb", buffering=0)


def _check(file: FileIO, sha256: str) -> None:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        raise errors.WrongHashError(sha256, digest)
    os.fsync(file.fileno())
