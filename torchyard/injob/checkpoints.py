"""`checkpoint` and `restore`: folders that are committed whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from torchyard.injob import collective, control, files, layout, numbers, place, reasons
from torchyard.injob.exceptions import CheckpointError, EmptyCheckpointError, NoProcessGroupError, OtherRankError
from torchyard.injob.reasons import CheckpointReason


class CheckpointFolder:
    """The folder of one checkpoint, from its making to its final name."""

    def __init__(self, step: int) -> None:
        attempt = place.current()
        self.step = step
        self._parent = "checkpoints" if attempt is None else attempt.path(layout.CHECKPOINTS)
        self._final = os.path.join(self._parent, layout.checkpoint_name(step))
        #: Where it is written.
        self.path = self._final + layout.TEMPORARY
        # On the queue an older one of that name stands: the node may be reading it.
        self._replace = attempt is None
        #: Its bytes on this node's disk, once it is committed, on the rank that leads.
        self.size = 0

    def prepare(self) -> Exception | None:
        """Empty the folder, on the rank that leads, and return what went wrong."""
        return self._lead(self._make)

    def commit(self, metrics: Mapping[str, Any]) -> Exception | None:
        """Bring the folder to the disk with its manifest and give it its name, on the rank that leads; as `prepare`."""
        failure = self._lead(lambda: self._commit(metrics))
        if failure is not None:
            self.discard()
        return failure

    def discard(self) -> None:
        """Remove what was written."""
        if place.leads():
            shutil.rmtree(self.path, ignore_errors=True)

    def _lead(self, act: Callable[[], None]) -> Exception | None:
        try:
            if place.leads():
                act()
        except Exception as error:  # noqa: BLE001 (the other ranks must know of whatever it is)
            return error
        return None

    def _make(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.path)

    def _commit(self, metrics: Mapping[str, Any]) -> None:
        self.size = _write_manifest(self.path, self.step, metrics)
        old = self._final + ".old" + layout.TEMPORARY
        if os.path.isdir(self._final):
            if not self._replace:
                shutil.rmtree(self.path)
                return
            os.rename(self._final, old)
        os.rename(self.path, self._final)
        files.fsync(self._parent)
        shutil.rmtree(old, ignore_errors=True)


class CheckpointWriter(AbstractContextManager[Path]):
    """One checkpoint being written by all ranks; use `checkpoint`."""

    def __init__(self, step: int, metrics: Mapping[str, Any], *, leaves: bool = True) -> None:
        self._step = step
        self._metrics = metrics
        #: Whether it is the one that a stop waits for.
        self._leaves = leaves

    @property
    def size(self) -> int:
        """Its bytes on this node's disk, once it is committed, on the rank that leads."""
        return self._folder.size

    def __enter__(self) -> Path:
        require_group()
        (self._step,) = collective.broadcast([self._step])
        self._folder = CheckpointFolder(self._step)
        failure = self._folder.prepare()
        prepared = collective.all_true(failure is None)
        if not prepared:
            # Else it would be due at each step, on a full disk say.
            control.checkpoint_ended(committed=False)
        if failure is not None:
            raise failure
        if not prepared:
            raise OtherRankError
        return Path(self._folder.path).absolute()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            # An interrupt may have hit this rank alone: it must not wait for the others.
            self._folder.discard()
            return
        failure = self._commit(written=collective.all_true(error is None))
        committed = collective.all_true(error is None and failure is None)
        stopping = self._leaves and control.stopping()
        control.checkpoint_ended(committed=committed)
        if stopping and (error or failure) is not None:
            note_unsaved(error or failure)
        if error is not None:
            return
        if failure is not None:
            raise failure
        if not committed:
            raise OtherRankError
        if stopping:
            self._leave()

    def _commit(self, *, written: bool) -> Exception | None:
        """Commits, or removes what was written; answers what went wrong."""
        if not written:
            self._folder.discard()
            return None
        return self._folder.commit(self._metrics) or self._note_stop()

    def _note_stop(self) -> Exception | None:
        attempt = place.current()
        if attempt is None or place.rank() != 0 or not (self._leaves and control.stopping()):
            return None
        try:
            files.write_json(attempt.path(layout.OUTCOME), {"stopped_at_step": self._step})
        except OSError as error:
            return error
        return None

    def _leave(self) -> None:
        place.say("stopped at step %d" % self._step)
        collective.leave_together()
        raise SystemExit(0)


def note_unsaved(reason: object) -> None:
    """Leave word why nothing is saved by a job that is being stopped."""
    attempt = place.current()
    if attempt is None:
        return
    try:
        why = reasons.of_error(reason)
        files.write_json(attempt.path(layout.OUTCOME), {"unsaved": str(why), **reasons.parts([why])})
    except OSError as error:
        place.say("cannot write %s: %s" % (attempt.path(layout.OUTCOME), error))


def require_group() -> None:
    """Refuse ranks that cannot wait for each other: they would commit half of what they write."""
    if collective.world_size() == 1 and os.environ.get("WORLD_SIZE", "1") != "1":
        raise NoProcessGroupError


def _write_manifest(folder: str, step: int, metrics: Mapping[str, Any]) -> int:
    """Answer the bytes of all files."""
    listed = _sync_tree(folder)
    if not listed and place.rank() == 0:
        raise EmptyCheckpointError
    if any(entry["path"] == layout.MANIFEST for entry in listed):
        raise CheckpointError(CheckpointReason("own-file", name=layout.MANIFEST))
    values = {name: numbers.as_float(value) for name, value in metrics.items()}
    manifest = {
        "step": step,
        "created_us": time.time_ns() // 1000,
        "metrics": {name: numbers.as_json(value) for name, value in values.items() if value is not None},
        "files": listed,
    }
    files.write_json(os.path.join(folder, layout.MANIFEST), manifest)
    return sum(entry["size"] for entry in listed)


def _sync_tree(folder: str) -> list[dict[str, Any]]:
    listed = []
    for parent, _, names in os.walk(folder, onerror=_raise):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.islink(path):
                raise CheckpointError(CheckpointReason("a-link", path=path))
            files.fsync(path)
            listed.append({"path": os.path.relpath(path, folder), "size": os.path.getsize(path)})
        files.fsync(parent)
    return sorted(listed, key=lambda entry: str(entry["path"]))


def _raise(error: OSError) -> None:
    raise error


def checkpoint(step: int, metrics: Mapping[str, Any] | None = None) -> AbstractContextManager[Path]:
    """A folder to save the state of this step in: ``with torchyard.checkpoint(step=step) as folder: …``.

    Every rank enters and gets the same folder; each may write files of its own. When all have left the block, rank 0
    commits it: the files are brought to the disk, listed with their sizes, and renamed into place. On several nodes
    each has a folder of its own, which its first rank commits; the queue puts all their files together. An exception on
    any rank discards it on all and leaves earlier checkpoints alone. `metrics` decide which one is the best. If the
    job is being stopped, every rank then exits with code 0. A second checkpoint at a step that has one is dropped.

    Off the queue the folder is ``./checkpoints/step-…``, and a second one at the same step replaces the first, so a
    script works unchanged.
    """
    return CheckpointWriter(int(step), metrics or {})


def restore() -> Path | None:
    """The folder of the checkpoint to continue from, or None at a fresh start and off the queue.

    Raises CheckpointError if there should be one and it is gone: starting anew would silently lose the work so far.
    """
    folder = os.environ.get(layout.RESTORE_DIR)
    if not folder or place.current() is None:
        return None
    if not os.path.isdir(folder):
        raise CheckpointError("the checkpoint to resume from is not there: %s" % folder)
    return Path(folder)
