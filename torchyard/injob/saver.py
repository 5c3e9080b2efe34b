"""Takes the checkpoints of a training, beside it or while it waits."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from torchyard.injob import checkpoints, collective, control, notes, numbers, place, reasons, state
from torchyard.injob.background import PendingCheckpoint, Writer
from torchyard.injob.exceptions import InJobError, OtherRankError, SeparateDisksError
from torchyard.injob.staging import Staging, taken

BROKEN, UNPREPARED, READY = 0, 1, 2


class Saver:
    """One training's checkpoints, one after the other. Every rank makes the same calls."""

    def __init__(self, *, asynchronous: bool) -> None:
        self._asynchronous = asynchronous
        self._writer = Writer()
        self._staging = Staging()

    def wait(self) -> str | None:
        """Wait until the last checkpoint is committed or discarded, and return why it is not there."""
        self._writer.wait()
        return self._writer.failure

    def save(self, training: state.TrainingState, position: state.Position, metrics: Mapping[str, Any]) -> bool:
        """Take a checkpoint; when the job is being stopped it is whole on the disk before all ranks leave.

        Whatever makes it fail, on any rank, ends no training: it is told of, and tried again when the next is due. A
        job that is being stopped leaves without one. Answers whether it was taken, or begun.
        """
        self.wait()
        try:
            checkpoints.require_group()
            if self._asynchronous and not control.stopping():
                self._start(training, position, metrics)
            else:
                self._write(training, position, metrics)
        except Exception as error:  # noqa: BLE001 (what scripts attach may raise anything)
            self._failed(position.step, error)
            return False
        return True

    def _failed(self, step: int, error: Exception) -> None:
        if control.stopping():
            place.say("stopped at step %d: nothing was saved, because %s" % (step, error))
            if not isinstance(error, OtherRankError):
                checkpoints.note_unsaved(_words(error))
            collective.leave_together()
            raise SystemExit(1)
        control.checkpoint_ended(committed=False)
        self._writer.failure = "no checkpoint of step %d: %s" % (step, _words(error))
        if isinstance(error, OtherRankError):
            place.say("no checkpoint of step %d, the training goes on: %s" % (step, error))
        else:
            notes.checkpoint_failed(step, _words(error))

    def _write(self, training: state.TrainingState, position: state.Position, metrics: Mapping[str, Any]) -> None:
        began = time.monotonic()
        taking = checkpoints.CheckpointWriter(position.step, metrics)
        with taking as folder:
            _within_reach(state.take(training, position, taken), str(folder)).write(str(folder), _group(training))
        control.measured(time.monotonic() - began, 0.0, taking.size)

    def _start(self, training: state.TrainingState, position: state.Position, metrics: Mapping[str, Any]) -> None:
        began = time.monotonic()
        folder, group = checkpoints.CheckpointFolder(position.step), _group(training)
        snapshot, failure = self._snapshot(training, position)
        unprepared = folder.prepare()
        ready = collective.minimum(BROKEN if failure else UNPREPARED if unprepared else READY)
        control.checkpoint_ended(committed=ready == READY)
        if ready == READY and snapshot is not None:
            snapshot = _within_reach(snapshot, folder.path)
            values = {name: numbers.as_float(value) for name, value in metrics.items()}
            names = state.names(training)
            stall = time.monotonic() - began
            self._writer.start(
                PendingCheckpoint(folder, lambda: snapshot.write(folder.path, group), values, names, stall)
            )
            return
        folder.discard()
        raise failure or unprepared or OtherRankError()

    def _snapshot(
        self, training: state.TrainingState, position: state.Position
    ) -> tuple[state.StateSnapshot | None, Exception | None]:
        try:
            self._staging.begin()
            snapshot = state.take(training, position, self._staging.copy)
            self._staging.finish()
        except Exception as error:  # noqa: BLE001 (raised once the other ranks know)
            return None, error
        return snapshot, None


def _within_reach(snapshot: state.StateSnapshot, folder: str) -> state.StateSnapshot:
    """Return what this rank writes into rank 0's folder, of its own snapshot and of those that do not reach it.

    Ranks that were started by hand on several disks do not see that folder: what is theirs goes to rank 0. On the queue
    each node has a folder of its own. Raises SeparateDisksError, on all ranks, where the model itself is in pieces.
    """
    if place.current() is not None:
        return snapshot
    seen = os.path.isdir(folder)
    if collective.all_true(seen):
        return snapshot
    if snapshot.shards is not None:
        raise SeparateDisksError
    theirs = collective.gathered({} if seen else snapshot.files)
    files = {name: value for each in theirs for name, value in each.items()}
    return state.StateSnapshot(files={**files, **(snapshot.files if seen else {})}, shards=None)


def _words(error: Exception) -> object:
    """Describe an error; with its kind where that is not one of ours, whose words suffice."""
    return reasons.of_error(error) if isinstance(error, InJobError) else "%s: %s" % (type(error).__name__, error)


def _group(training: state.TrainingState) -> Any:
    return collective.background_group() if training.sharded else None
