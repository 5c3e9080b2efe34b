"""Downloads that resume where they broke off and are checked by hash before they get their name."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import httpx

from torchyard import exceptions
from torchyard.client.connection import PATIENCE_S, RETRIED, Connection, pauses

CHUNK = 2**20
PARTIAL = ".part"


def fetch(
    connection: Connection,
    path: str,
    target: Path,
    *,
    size: int,
    sha256: str | None,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> Path:
    """Download into `target`, continuing a partial file; a finished one that matches is left as it is.

    `progress` gets the number of bytes that each step added. Raises DamagedDownloadError when the hash differs, and
    UnreachableError when no more bytes have come for `PATIENCE_S`.
    """
    if target.is_file() and target.stat().st_size == size and (sha256 is None or digest(target) == sha256):
        progress(size)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + PARTIAL)
    _complete(connection, path, partial, size, progress)
    if sha256 is not None and digest(partial) != sha256:
        partial.unlink()
        raise exceptions.DamagedDownloadError(f"{target.name} does not match its SHA-256: pull it again")
    partial.replace(target)
    return target


def _complete(connection: Connection, path: str, partial: Path, size: int, progress: Callable[[int], None]) -> None:
    partial.touch()
    if partial.stat().st_size > size:
        partial.unlink()
        partial.touch()
    progress(partial.stat().st_size)
    waits = pauses(PATIENCE_S)
    while (have := partial.stat().st_size) < size or size == 0:
        try:
            _append(connection, path, partial, have, progress)
        except (httpx.TransportError, exceptions.RefusedError) as error:
            if isinstance(error, exceptions.RefusedError) and error.problem.status not in RETRIED:
                raise
            if partial.stat().st_size > have:
                waits = pauses(PATIENCE_S)
            if (pause := next(waits, None)) is None:
                raise connection.unreachable(error) from error
            time.sleep(pause)
            continue
        if partial.stat().st_size != size:
            message = f"{partial.name} has {partial.stat().st_size} bytes instead of {size}: pull it again"
            partial.unlink()
            raise exceptions.DamagedDownloadError(message)
        return


def _append(connection: Connection, path: str, partial: Path, have: int, progress: Callable[[int], None]) -> None:
    headers = {"Range": f"bytes={have}-"} if have else {}
    with connection.stream(path, headers=headers) as response:
        resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
        if have and not resumed:
            progress(-have)
        with partial.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_bytes(CHUNK):
                file.write(chunk)
                progress(len(chunk))


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: Path, name: str) -> Path:
    """The path of a named file below a folder; a name that would lead out of it is refused."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise exceptions.DamagedDownloadError(f"the service names a file {name!r}, which leads out of the folder")
    return folder / parts
