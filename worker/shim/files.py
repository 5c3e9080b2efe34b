"""Files that the shim reads and writes, made so that a full disk does not hurt."""

import errno
import json
import os
import stat
import time
from typing import Any

Json = dict[str, Any]
#: More than this is no mark of ours.
MAX_MARK = 4096
#: What lies below it is the job's to change.
_JOB = "/job/"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def now_us() -> int:
    """The wall clock in microseconds UTC."""
    return time.time_ns() // 1000


def steady_us() -> int:
    """Microseconds since the machine's boot, on a clock that nobody sets."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


#: As `torchyard.errnos.NO_SPACE`: the shim imports the standard library alone.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
#: Why an attempt on a full disk did not start.
DISK_FULL = (
    "the node's disk was full when it started this attempt, and no instruction of the job has run: make room on it"
)
#: Less than a block of a file system, as most have it.
FULL = 4096


def full(path: str) -> bool:
    """Return whether nothing can be added to a file."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < FULL


def say(text: str) -> None:
    """A line in the launcher's log; a full disk must not hurt."""
    try:
        os.write(2, f"torchyard: {text}\n".encode())
    except OSError:
        return


def write_whole(path: str, content: Json, mode: int = 0o600) -> None:
    """A reader sees the old file or the new one. Not fsynced: it matters to the living only. Raises OSError."""
    temporary = f"{path}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        os.write(descriptor, json.dumps(content).encode())
    finally:
        os.close(descriptor)
    os.rename(temporary, path)


def read_mark(path: str, owners: set[int | None]) -> Json | None:
    """Read a mark of the job: only a small regular file of its own user is believed."""
    folder, name = os.path.split(path)
    try:
        at = open_folder(folder)
    except OSError:
        return None
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError:
        return None
    finally:
        os.close(at)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in owners:
            return None
        try:
            value = json.loads(file.read(MAX_MARK))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def open_folder(path: str) -> int:
    """Open an attempt's ``job/`` or a folder in it; no link that the job has put there is followed. Raises OSError."""
    base, _, inside = f"{path}/".rpartition(_JOB)
    at = os.open(base, _FOLDER)
    for name in ("job", *inside.split("/")[:-1]):
        outer = at
        try:
            at = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
    return at


def names_in(path: str) -> list[str]:
    """The names in a folder of the job's; none if it is not there."""
    try:
        at = open_folder(path)
    except OSError:
        return []
    try:
        return os.listdir(at)
    finally:
        os.close(at)


def result_size(ranks: int) -> int:
    """Bytes that the result of so many ranks takes at most."""
    return 16384 + 256 * ranks


class ResultFile:
    """``result.json``, whose space is taken before the job can fill the disk.

    The worker hears of it through ``result.json.pipe`` before it lies on the disk for good, which takes milliseconds.
    """

    def __init__(self, path: str, ranks: int) -> None:
        self._path = path
        self._temporary = f"{path}.reserved"
        self._descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self._descriptor, 0, result_size(ranks))
        try:
            os.mkfifo(f"{path}.pipe", 0o600)
        except OSError:
            return  # an earlier shim's of the attempt, or no room: then the worker waits for the file

    def write(self, result: Json) -> None:
        """End the attempt for good, over a power cut too."""
        data = json.dumps(result).encode()
        self._tell(data)
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))
        os.fsync(self._descriptor)
        os.rename(self._temporary, self._path)
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def _tell(self, data: bytes) -> None:
        """Put a line into the pipe. It stays open while this process lives, and so keeps the line until it is read."""
        try:
            # For reading too: so it opens although nobody else has it open yet.
            pipe = os.open(f"{self._path}.pipe", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            os.write(pipe, data + b"\n")
        except OSError:
            return


class CommandFile:
    """``command.json``, parsed only when it has been replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._last: Json | None = None

    def new(self) -> Json | None:
        """A command that differs from the last one, else None."""
        try:
            status = os.stat(self._path)
            if (status.st_ino, status.st_mtime_ns) == self._seen:
                return None
            with open(self._path, "rb") as file:
                command = dict(json.loads(file.read()))
        except (OSError, ValueError):
            return None
        self._seen = (status.st_ino, status.st_mtime_ns)
        if command == self._last:
            return None
        self._last = command
        return command
