"""Outputs: what lies in ``TORCHYARD_OUTPUT_DIR`` when the attempt has ended."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from torchyard import wire
from torchyard.injob import layout
from worker.exceptions import RefusedError, UnavailableError
from worker.forward import opening
from worker.forward.blobs import BlobSender, sha256_of

MAX_FILES: Final = 10_000
MAX_DEPTH: Final = 64
ROUNDS: Final = 4
#: Statuses that say that this file is bad, and not that the service does not know this worker now.
BAD_FILE: Final = frozenset({400, 413, 422})

logger = logging.getLogger(__name__)


class OutputSink(Protocol):
    """Where outputs are reported."""

    def outputs(self, attempt: str, report: wire.OutputReport) -> list[str]: ...


class OutputForwarder:
    """The output folder of one attempt; nobody writes there any more."""

    def __init__(self, sink: OutputSink, blobs: BlobSender, attempt: str, folder: Path, *, owner: int) -> None:
        self._sink = sink
        self._blobs = blobs
        self._attempt = attempt
        self._folder = folder
        self._owner = owner
        self._files: list[wire.FileRef] | None = None
        #: What the owner of the job should know; goes to the launcher's log.
        self.notes: list[str] = []

    def pump(self) -> bool:
        """Reports and stores the files; False once the store has all of them."""
        if self._files is None:
            self._files = list(self._collect())
        if not self._files:
            return False
        for _ in range(ROUNDS):
            missing = set(self._sink.outputs(self._attempt, wire.OutputReport(files=self._files)))
            if not missing:
                return False
            self._send(missing)
        raise UnavailableError("the store still lacks outputs that it was sent")

    def _collect(self) -> Iterator[wire.FileRef]:
        for count, path in enumerate(walk(self._folder, layout.OUTPUT)):
            if count >= MAX_FILES:
                self.notes.append(
                    f"the output folder holds more than {MAX_FILES} files: only the first {MAX_FILES} by name are "
                    "kept, so pack them into archives"
                )
                return
            try:
                with self._open(path) as descriptor:
                    sha256, size = sha256_of(descriptor)
                    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            except OSError as error:
                if not (opening.strange(error) or isinstance(error, FileNotFoundError)):
                    raise
                self.notes.append(f"output {path!r} is left out: {error}")
                continue
            yield wire.FileRef(path=path, size=size, sha256=sha256, mode=0o755 if mode & 0o100 else 0o644)

    def _send(self, missing: set[str]) -> None:
        for file in list(self._files or ()):
            if file.sha256 in missing:
                missing.discard(file.sha256)
                try:
                    with self._open(file.path) as descriptor:
                        self._blobs.send(descriptor, file.sha256, file.size)
                except OSError as error:
                    self._leave_out(file, error)
                except RefusedError as error:
                    if error.status not in BAD_FILE:
                        raise
                    self._leave_out(file, error)

    def _leave_out(self, file: wire.FileRef, error: Exception) -> None:
        self.notes.append(f"output {file.path!r} is left out: {error}")
        self._files = [other for other in self._files or () if other.sha256 != file.sha256]

    def _open(self, path: str) -> opening.Opened:
        return opening.file_inside(self._folder, f"{layout.OUTPUT}/{path}", self._owner)


def walk(base: Path, inside: str) -> Iterator[str]:
    """Paths of the regular files below ``base/inside``, sorted, relative to it; links are not followed."""
    pending = [""]
    while pending:
        relative = pending.pop()
        folders, names = _list(base, f"{inside}/{relative}")
        yield from (relative + name for name in names)
        if relative.count("/") < MAX_DEPTH:
            pending += [f"{relative}{name}/" for name in reversed(folders)]


def _list(base: Path, inside: str) -> tuple[list[str], list[str]]:
    """Names of the folders and of the regular files in a folder; names that are not UTF-8 are left out."""
    try:
        with opening.folder(base, inside) as at, os.scandir(at) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False), _is_file(entry)) for entry in entries)
    except OSError as error:
        logger.debug("%s is left out: %s", inside, error)
        return [], []
    found = [entry for entry in found if entry[0].isprintable()]
    return [name for name, is_folder, _ in found if is_folder], [name for name, _, is_file in found if is_file]


def _is_file(entry: "os.DirEntry[str]") -> bool:
    return entry.is_file(follow_symlinks=False)
