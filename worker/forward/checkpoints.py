"""Checkpoints: registered as soon as they are committed, hashed and stored in the background.

Hashing before the commit would stall the training, so a checkpoint is reported twice: at once with sizes only, and
later with hashes, until the store lacks none of its files.
"""

import errno
import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.numbers import JSON_CONSTANTS
from worker.attempts import files, opening, removal
from worker.attempts.content import sha256_of
from worker.attempts.tree import Stamp, stamp_of
from worker.background import BackgroundTask, Spawn
from worker.exceptions import RequestRefusedError, WorkerError
from worker.forward.blobs import BlobSender

#: Kept by the worker in ``yard/``: names of checkpoints that are stored, so that they are not hashed again.
STORED_FILE: Final = f"{layout.YARD}/stored.json"
MAX_FILES: Final = 10_000
MAX_MANIFEST: Final = 16 * 2**20
#: Rounds of report and upload before the next pump tries again.
ROUNDS: Final = 4
#: Statuses that say that this checkpoint is bad, and not that the service does not want this attempt.
BAD_REPORT: Final = frozenset({400, 413, 422})

logger = logging.getLogger(__name__)


class CheckpointSink(Protocol):
    """Service that registers checkpoints."""

    def checkpoint(self, attempt: AttemptId, report: wire.CheckpointReport) -> wire.CheckpointAnswer: ...


@dataclass(kw_only=True)
class _Checkpoint:
    report: wire.CheckpointReport
    registered: bool = False
    stored: bool = False
    removed: bool = False
    hashes: dict[str, str] = field(default_factory=dict)


class CheckpointForwarder:
    """The checkpoints of one attempt. `spawn` runs a function in the background."""

    def __init__(
        self,
        sink: CheckpointSink,
        blobs: BlobSender,
        attempt: AttemptId,
        folder: Path,
        *,
        owner: int,
        spawn: Spawn,
    ) -> None:
        self._sink = sink
        self._blobs = blobs
        self._attempt = attempt
        self._folder = folder
        self._owner = owner
        self._task = BackgroundTask(spawn)
        self._found: dict[str, _Checkpoint] = {}
        self._broken: set[str] = set()
        #: Manifests that could not be read, as they were then: one that is still being written is read again.
        self._unreadable: dict[str, Stamp] = {}
        self._stored = self._read_stored()
        self._failure: Exception | None = None

    def pump(self) -> bool:
        """Register what is new and store what is registered; True until everything is stored.

        Raises what a background run ran into, so that the caller waits before the next.
        """
        self._discover()
        for checkpoint in self._all():
            if not checkpoint.registered:
                self._register(checkpoint)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        waiting = [entry for entry in self._all() if not entry.stored and not entry.removed]
        if waiting and self._task.idle:
            newest = max(waiting, key=lambda entry: entry.report.step)
            self._task.start(lambda: self._store_in_background(newest))
        return bool(waiting)

    def _all(self) -> list[_Checkpoint]:
        """A copy, since the background gives some up meanwhile."""
        return list(self._found.values())

    def _discover(self) -> None:
        try:
            with opening.folder(self._folder, layout.CHECKPOINTS) as at:
                found = opening.names(at)
        except FileNotFoundError:
            return
        for name in found:
            if not name.endswith(layout.TEMPORARY) and name not in self._found and name not in self._broken:
                self._read(name)

    def _read(self, name: str) -> None:
        path = f"{layout.CHECKPOINTS}/{name}/{layout.MANIFEST}"
        try:
            with opening.file_inside(self._folder, path, self._owner) as descriptor:
                stamp = stamp_of(os.fstat(descriptor))
                if self._unreadable.get(name) == stamp:
                    return
                content = os.pread(descriptor, MAX_MANIFEST, 0)
        except FileNotFoundError:
            return
        except OSError as error:
            if not opening.strange(error):
                raise
            logger.warning("%s: checkpoint %s is left out: %s", self._attempt, name, error)
            self._broken.add(name)
            return
        try:
            report = parse_manifest(name, content)
        except ValueError as error:
            logger.warning("%s: checkpoint %s waits for another manifest: %s", self._attempt, name, error)
            self._unreadable[name] = stamp
            return
        stored = name in self._stored
        self._found[name] = _Checkpoint(report=report, registered=stored, stored=stored)

    def _register(self, checkpoint: _Checkpoint) -> None:
        try:
            answer = self._sink.checkpoint(self._attempt, checkpoint.report)
        except RequestRefusedError as error:
            if error.status not in BAD_REPORT:
                raise
            self._give_up(checkpoint, error)
            return
        checkpoint.registered = True
        self._remove(answer.remove)

    def _store_in_background(self, checkpoint: _Checkpoint) -> None:
        try:
            self._store(checkpoint)
        except WorkerError as error:
            if isinstance(error, RequestRefusedError) and error.status in BAD_REPORT:
                self._give_up(checkpoint, error)
            else:
                self._failure = error
        except OSError as error:
            if opening.strange(error) or error.errno in {None, errno.ENOENT}:
                self._give_up(checkpoint, error)
            else:
                self._failure = error
        except ValueError as error:
            self._give_up(checkpoint, error)
        except Exception as error:
            logger.exception("%s: a fault in TorchYard", self._attempt)
            self._failure = error

    def _store(self, checkpoint: _Checkpoint) -> None:
        report = self._hashed(checkpoint)
        for _ in range(ROUNDS):
            answer = self._sink.checkpoint(self._attempt, report)
            missing = set(answer.missing)
            if not missing:
                checkpoint.stored = True
                self._stored.add(report.name)
                self._write_stored()
                self._remove(answer.remove)
                return
            for file in report.files:
                if file.sha256 in missing:
                    self._send(report.name, file)
                    missing.discard(file.sha256)

    def _hashed(self, checkpoint: _Checkpoint) -> wire.CheckpointReport:
        report = checkpoint.report
        for file in report.files:
            if file.path not in checkpoint.hashes:
                with self._open(report.name, file.path) as descriptor:
                    sha256, size = sha256_of(descriptor)
                if size != file.size:
                    raise ValueError(f"{file.path} has {size} bytes, its manifest says {file.size}")
                checkpoint.hashes[file.path] = sha256
        hashed = [file.model_copy(update={"sha256": checkpoint.hashes[file.path]}) for file in report.files]
        return report.model_copy(update={"files": hashed})

    def _send(self, name: str, file: wire.CheckpointFile) -> None:
        with self._open(name, file.path) as descriptor:
            self._blobs.send(descriptor, str(file.sha256), file.size)

    def _open(self, name: str, path: str) -> opening.Opened:
        return opening.file_inside(self._folder, f"{layout.CHECKPOINTS}/{name}/{path}", self._owner)

    def _give_up(self, checkpoint: _Checkpoint, error: Exception) -> None:
        logger.warning("%s: checkpoint %s cannot be stored: %s", self._attempt, checkpoint.report.name, error)
        self._broken.add(checkpoint.report.name)
        self._found.pop(checkpoint.report.name, None)

    def _remove(self, names: list[str]) -> None:
        """Remove local folders that the service needs no more; never the newest."""
        newest = max((entry.report.step for entry in self._all()), default=None)
        for name in names:
            entry = self._found.get(name)
            if entry is None or entry.removed or not entry.registered or entry.report.step == newest:
                continue
            entry.removed = True
            logger.info("%s: checkpoint %s is no longer kept", self._attempt, name)
            try:
                with opening.folder(self._folder, layout.CHECKPOINTS) as at:
                    if not removal.remove_at(at, name):
                        logger.warning("%s: checkpoint %s cannot be removed whole", self._attempt, name)
            except OSError as error:
                logger.warning("%s: checkpoint %s cannot be removed: %s", self._attempt, name, error)

    def _read_stored(self) -> set[str]:
        try:
            return set((files.read_json(self._folder / STORED_FILE) or {}).get("stored", ()))
        except (OSError, ValueError):
            return set()

    def _write_stored(self) -> None:
        try:
            content = json.dumps({"stored": sorted(self._stored)}).encode()
            files.write_whole(self._folder / STORED_FILE, content, durable=False)
        except OSError as error:
            logger.warning("%s: the list of stored checkpoints cannot be written: %s", self._attempt, error)


def parse_manifest(name: str, data: bytes) -> wire.CheckpointReport:
    """Read a manifest that a job wrote; raise ValueError when it is not one."""
    try:
        content = json.loads(data, parse_constant=JSON_CONSTANTS.__getitem__)
    except RecursionError as error:
        raise ValueError("its manifest is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("its manifest is not an object")
    report = wire.CheckpointReport.model_validate({**content, "name": name})
    if len(report.files) > MAX_FILES:
        raise ValueError(f"it has more than {MAX_FILES} files: pack them into fewer")
    for file in report.files:
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts or str(path) != file.path or file.size < 0:
            raise ValueError(f"its manifest names {file.path!r}, which is not a plain path inside it")
    if len({file.path for file in report.files}) != len(report.files):
        raise ValueError("its manifest names a file twice")
    return report
