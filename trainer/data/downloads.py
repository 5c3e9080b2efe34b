"""Files from the network, brought once to each file system whatever number of ranks and jobs ask for them.

Every rank takes the file lock; the first one fetches, the others find the file. A file gets its name only after its
checksum was compared, an unpacked archive counts only with its mark, and what an interruption left is gone on with.
"""

import hashlib
import logging
import os
import pickle
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock, Timeout

from torchyard.injob import layout
from trainer.data.agreement import agreed
from trainer.exceptions import DownloadError

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("trainer")

#: Seconds without a byte after which a connection counts as lost.
_SILENCE_S = 60.0
#: Seconds after which a network that answers nothing at all counts as away.
_CONNECT_S = 10.0
#: Tries in a row that may bring the file no further.
_ATTEMPTS = 3
T = TypeVar("T")
_CHECKSUM = re.compile(r"(md5|sha256):([0-9a-f]+)")


@dataclass(frozen=True, kw_only=True)
class DownloadSource:
    """A file on the network."""

    #: The same content at several places, tried in this order.
    urls: tuple[str, ...]
    #: Its name below the root, and the name of the mark that it was unpacked.
    file: str
    #: ``md5:…`` or ``sha256:…``, the digest or its beginning.
    checksum: str
    #: How the file is turned into what is used, given the file: afterwards it is deleted. None keeps the file.
    unpack: Callable[[Path], None] | None = None


@dataclass
class DownloadTime:
    """Seconds that this process has waited for downloads, its own and others', which are not training time."""

    seconds: float = 0.0


DOWNLOAD_TIME = DownloadTime()


def default_root() -> Path:
    """Folder for data and weights if the recipe says nothing: `TORCHYARD_DATA`, else the home's cache."""
    return Path(os.environ.get(layout.DATA) or "~/.cache/torchyard/data").expanduser()


def root_of(given: str | None) -> Path:
    """Return the root that a recipe gives, or the default."""
    return Path(given).expanduser() if given else default_root()


def obtain(sources: tuple[DownloadSource, ...], root: Path, opened: Callable[[], T], *, download: bool = True) -> T:
    """Open the files once they are on the file system of every rank; all ranks call it.

    Raises DownloadError on every rank when the files are missing or unusable on any.
    """

    def work() -> T:
        if download:
            _timed(sources, root)
        return _opened(root, opened)

    return agreed(work)


def _timed(sources: tuple[DownloadSource, ...], root: Path) -> None:
    began = time.perf_counter()
    bring(sources, root)
    seconds = time.perf_counter() - began
    DOWNLOAD_TIME.seconds += seconds
    if seconds > 1:
        log.info("data in %s are there after %.1f s of download", root, seconds)


def _opened(root: Path, opened: Callable[[], T]) -> T:
    try:
        return opened()
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise DownloadError(
            f"what lies in {root} cannot be used: {error}: delete it and let it be downloaded (download: true), or put "
            "whole data there"
        ) from error


def bring(sources: tuple[DownloadSource, ...], root: Path) -> None:
    """Make the files be there on this process's own file system; raises DownloadError."""
    try:
        for source in sources:
            if not _present(source, root):
                _bring(source, root)
    except OSError as error:
        raise DownloadError(
            f"{root} cannot be filled: {error}: give data.root a folder that this user may write to, or put the files "
            "there and say data.download: false"
        ) from error


def _bring(source: DownloadSource, root: Path) -> None:
    (root / source.file).parent.mkdir(parents=True, exist_ok=True)
    with _locked(root / f"{source.file}.lock"):
        if not _present(source, root):  # nobody else has in the meantime
            _fetch(source, root / source.file)
            _unpack(source, root)


def _present(source: DownloadSource, root: Path) -> bool:
    return (_mark(source, root) if source.unpack else root / source.file).exists()


def _mark(source: DownloadSource, root: Path) -> Path:
    return root / f"{source.file}.done"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that excludes all processes that see this file system; that of a killed one is free."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        log.info("%s is being downloaded by another process: waiting", path.with_suffix("").name)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetch(source: DownloadSource, target: Path) -> None:
    """Download from the first place that has the right content."""
    if target.exists() and _matches(target, source.checksum):
        return
    part = target.with_name(f"{target.name}.part")
    problems = []
    # What an interruption left may be spoilt: then it was discarded, and the first place gets a second chance.
    for url in (*source.urls, *source.urls[:1]) if part.exists() else source.urls:
        problem = _download(url, part) or _verdict(part, source.checksum)
        if problem is None:
            part.replace(target)
            return
        problems.append(f"{url}: {problem}")
    raise DownloadError(
        f"{target.name} cannot be downloaded: {'; '.join(problems)}: mend the network or the proxy (HTTPS_PROXY), "
        f"or put the data into {target.parent} by hand and say data.download: false"
    )


def _verdict(part: Path, checksum: str) -> str | None:
    """Check a whole download; returns what is wrong with it, after discarding it."""
    if _matches(part, checksum):
        return None
    part.unlink()
    return f"the content does not match {checksum}"


def _matches(path: Path, checksum: str) -> bool:
    given = _CHECKSUM.fullmatch(checksum)
    assert given is not None, checksum
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(given[1], usedforsecurity=False))
    return digest.hexdigest().startswith(given[2])


def _download(url: str, part: Path) -> str | None:
    """Continue the download from where the file ends; returns what went wrong, if anything did."""
    import httpx  # a fifth of a second: only for those who download

    problem, failed, most = None, 0, _size(part)
    while failed < _ATTEMPTS:
        try:
            _continue(url, part)
            return None
        except httpx.HTTPStatusError as error:
            return f"the server answered {error.response.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            problem = str(error) or type(error).__name__
        # Not by the size before this try: a server without ranges begins the file anew each time.
        failed = 0 if _size(part) > most else failed + 1
        most = max(most, _size(part))
    return problem


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _continue(url: str, part: Path) -> None:
    import httpx

    done = _size(part)
    # Compressed in transit, the bytes would not be those of the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=timeout) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # it was whole already; the checksum will tell
        response.raise_for_status()
        log.info("downloading %s", url)
        _write(response, part, append=response.status_code == httpx.codes.PARTIAL_CONTENT)


def _write(response: "httpx.Response", part: Path, *, append: bool) -> None:
    with part.open("ab" if append else "wb") as file:
        for chunk in response.iter_raw():
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _unpack(source: DownloadSource, root: Path) -> None:
    if source.unpack is None:
        return
    archive = root / source.file
    try:
        source.unpack(archive)
    except (tarfile.TarError, EOFError) as error:
        raise DownloadError(f"{archive} cannot be unpacked: {error}: delete it and try again") from error
    _mark(source, root).touch()
    archive.unlink()


def untar(archive: Path) -> None:
    """Unpack a tar file beside itself."""
    with tarfile.open(archive) as opened:
        # Python before 3.11.4 has no filters; what is in the archive is known by its checksum all the same.
        opened.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        opened.extractall(archive.parent)  # noqa: S202 (filtered)
