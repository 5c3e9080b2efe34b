"""`checkpoint` and `restore`: folders that are committed whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from torchyard.injob import collective, control, files, layout, numbers, place
from torchyard.injob.exceptions import CheckpointError, EmptyCheckpointError, NoProcessGroupError, OtherRankError


class Checkpoint(AbstractContextManager[Path]):
    """One checkpoint being written by all ranks; use `checkpoint`."""

    def __init__(self, step: int, metrics: Mapping[str, Any]) -> None:
        self._attempt = place.current()
        self._parent = "checkpoints" if self._attempt is None else self._attempt.path(layout.CHECKPOINTS)
        self._step = step
        self._metrics = metrics

    @property
    def _final(self) -> str:
        return os.path.join(self._parent, layout.checkpoint_name(self._step))

    @property
    def _temporary(self) -> str:
        return self._final + layout.TEMPORARY

    def __enter__(self) -> Path:
        if collective.world_size() == 1 and os.environ.get("WORLD_SIZE", "1") != "1":
            # Ranks that cannot wait for each other would commit half of what they write.
            raise NoProcessGroupError
        failure = self._prepare() if place.rank() == 0 else None
        prepared, self._step = collective.broadcast([failure is None, self._step])
        if failure is not None:
            raise failure
        if not prepared:
            raise OtherRankError
        return Path(self._temporary).absolute()

    def _prepare(self) -> OSError | None:
        try:
            shutil.rmtree(self._temporary, ignore_errors=True)
            os.makedirs(self._temporary)
        except OSError as error:
            return error
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            # An interrupt may have hit this rank alone: it must not wait for the others.
            self._discard()
            return
        written = collective.all_true(error is None)
        failure = self._finish(written) if place.rank() == 0 else None
        (committed,) = collective.broadcast([written and failure is None])
        stopping = control.stopping()
        control.settle(committed=bool(committed))
        if error is not None:
            return
        if failure is not None:
            raise failure
        if not committed:
            raise OtherRankError
        if stopping:
            self._leave()

    def _finish(self, written: bool) -> Exception | None:
        """Commits on rank 0, or removes what was written; answers what went wrong."""
        if not written:
            self._discard()
            return None
        try:
            commit(self._temporary, self._final, self._step, self._metrics, replace=self._attempt is None)
            if self._attempt is not None and control.stopping():
                files.write_json(self._attempt.path(layout.OUTCOME), {"stopped_at_step": self._step})
        except (OSError, CheckpointError) as error:
            self._discard()
            return error
        return None

    def _discard(self) -> None:
        if place.rank() == 0:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _leave(self) -> None:
        place.say("stopped at step %d" % self._step)
        collective.leave_together()
        raise SystemExit(0)


def commit(temporary: str, final: str, step: int, metrics: Mapping[str, Any], *, replace: bool) -> None:
    """Brings a folder to the disk with its manifest and gives it its final name.

    With `replace` an older folder of that name gives way; without, it stands and the new one is dropped, because the
    node may be reading it.
    """
    _write_manifest(temporary, step, metrics)
    if os.path.isdir(final):
        if not replace:
            shutil.rmtree(temporary)
            return
        os.rename(final, final + ".old" + layout.TEMPORARY)
    os.rename(temporary, final)
    files.fsync(os.path.dirname(final) or ".")
    shutil.rmtree(final + ".old" + layout.TEMPORARY, ignore_errors=True)


def _write_manifest(folder: str, step: int, metrics: Mapping[str, Any]) -> None:
    listed = _sync_tree(folder)
    if not listed:
        raise EmptyCheckpointError
    if any(entry["path"] == layout.MANIFEST for entry in listed):
        raise CheckpointError("%s is TorchYard's own file: choose another name" % layout.MANIFEST)
    values = {name: numbers.as_float(value) for name, value in metrics.items()}
    manifest = {
        "step": step,
        "created_us": time.time_ns() // 1000,
        "metrics": {name: numbers.as_json(value) for name, value in values.items() if value is not None},
        "files": listed,
    }
    files.write_json(os.path.join(folder, layout.MANIFEST), manifest)


def _sync_tree(folder: str) -> list[dict[str, Any]]:
    listed = []
    for parent, _, names in os.walk(folder, onerror=_raise):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.islink(path):
                raise CheckpointError("%s is a link: a checkpoint holds files, copy it" % path)
            files.fsync(path)
            listed.append({"path": os.path.relpath(path, folder), "size": os.path.getsize(path)})
        files.fsync(parent)
    return sorted(listed, key=lambda entry: str(entry["path"]))


def _raise(error: OSError) -> None:
    raise error


def checkpoint(step: int, metrics: Mapping[str, Any] | None = None) -> AbstractContextManager[Path]:
    """A folder to save the state of this step in: ``with torchyard.checkpoint(step=step) as folder: …``.

    Every rank enters and gets the same folder; each may write files of its own. When all have left the block, rank 0
    commits it: the files are brought to the disk, listed with their sizes, and renamed into place. An exception on
    any rank discards it on all and leaves earlier checkpoints alone. `metrics` decide which one is the best. If the
    job is being stopped, every rank then exits with code 0. A second checkpoint at a step that has one is dropped.

    Off the queue the folder is ``./checkpoints/step-…``, and a second one at the same step replaces the first, so a
    script works unchanged.
    """
    return Checkpoint(int(step), metrics or {})


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
