"""`attach`: metrics, checkpoints, exact resume and a clean stop for any PyTorch training loop."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchyard.injob import (
    checkpoints,
    collective,
    control,
    cursors,
    gloo,
    metrics,
    notes,
    place,
    random_streams,
    saver,
    shards,
    share,
    state,
)
from torchyard.injob.gradients import Gradients
from torchyard.injob.modules import Models
from torchyard.injob.optimizers import Optimizers


def attach(
    *,
    model: Any = None,
    optimizer: Any = None,
    loader: Any = None,
    sharded: bool | None = None,
    ranks: Mapping[str, Any] | None = None,
    restore: str | os.PathLike[str] | None = None,
    asynchronous: bool = True,
    extra: Mapping[str, Any] | None = None,
    check: Callable[[dict[str, Any]], None] | None = None,
    **stateful: Any,
) -> TrainingRun:
    """Follow a training loop: metrics, checkpoints, exact resume, a clean stop. It wraps nothing.

        run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)
        for epoch in run.epochs(10):            # from where it was stopped; calls set_epoch
            for inputs, targets in loader:      # without the batches that were taken
                ...
                run.report(loss=loss)           # after each step of the optimizer, on every rank

    Call it on every rank, after the model is wrapped and the optimizer made, before the first batch. If the job goes
    on from a checkpoint, everything given is loaded from it; off the queue nothing is recorded, and a checkpoint is
    taken only by `TrainingRun.save`.

    - `model`: a module, or the stages of one in a list; bare, in DDP, sharded by `fully_shard`, compiled.
    - `optimizer`: an optimizer or several.
    - `loader`: a `DataLoader`, or one that Accelerate has prepared; or a loader or sampler that keeps its place itself
      (`state_dict`, `load_state_dict`). Of any other iterable an interrupted epoch is begun anew.
    - `stateful`: anything else with `state_dict` and `load_state_dict` that is equal on all ranks: schedulers,
      scalers, averages.
    - `ranks`: the same by name, each rank's own.
    - `sharded`: whether each rank writes its part of the parameters; by default if one of them is a DTensor.
      Otherwise rank 0 writes the whole model, portably, as ``model.pt``.
    - `asynchronous`: write beside the training. It needs host memory for one copy of what this rank writes.
    - `extra`: plain data that is saved, too. On resume `check` gets what was saved, before anything is loaded, and
      may raise; afterwards it is `TrainingRun.extra`.
    - `restore`: the checkpoint to go on from instead of `torchyard.restore()`.

    A run that is stopped and resumed is bit for bit the one that was not, on the CPU with as many ranks, where chance
    comes from the streams of Python, NumPy and torch in this process and from generators of the loader and its
    samplers. Chance in loader processes is not followed: their streams begin anew. See `TrainingRun.inexact`.

    Raises AttachError for what cannot be saved, ResumeError for a checkpoint that does not fit; then nothing is
    changed.
    """
    importlib.import_module("torch.utils.data")
    models = _several(model)
    share.limit(share.of(models))
    training = state.TrainingState(
        models=Models(models),
        optimizers=Optimizers(_several(optimizer)),
        gradients=Gradients([*_several(optimizer), *stateful.values()]),
        stateful={name: each for name, each in stateful.items() if each is not None},
        ranks={name: each for name, each in (ranks or {}).items() if each is not None},
        cursor=cursors.of(loader),
        sharded=shards.wanted(models) if sharded is None else sharded,
        extra=dict(extra or {}),
    )
    state.check(training)
    folder = checkpoints.restore() if restore is None else restore
    saved = None if folder is None else state.LoadedCheckpoint(os.fspath(folder))
    if saved is not None:
        if check is not None:
            check(saved.extra)
        saved.load(training)
    if models or training.stateful or training.ranks or _several(optimizer):
        control.choose()
    if place.process_group() is not None:
        gloo.finish_at_exit()  # started by hand, nothing else asks for it
    return TrainingRun(training, saved, asynchronous=asynchronous)


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


class TrainingRun:
    """A training that is followed from its loop; made by `attach`."""

    def __init__(
        self, training: state.TrainingState, saved: state.LoadedCheckpoint | None, *, asynchronous: bool
    ) -> None:
        position = state.Position() if saved is None else saved.position
        #: Steps of the optimizer done, over all attempts.
        self.step = position.step
        self._first_step = position.step
        #: The epoch that the training is in, or about to begin; from 0.
        self.epoch = position.epoch
        #: Whether the training goes on from a checkpoint.
        self.resumed = saved is not None
        #: What `extra` was in that checkpoint.
        self.extra: dict[str, Any] | None = None if saved is None else saved.extra
        #: Steps that the whole training takes, for the dashboard.
        self.total_steps: int | None = None
        self._training = training
        self._saved = saved
        self._saver = saver.Saver(asynchronous=asynchronous)
        if saved is not None:
            random_streams.restore(saved.random)
        self._saved_step = position.step
        self._told: str | None = None
        self._tell()

    @property
    def inexact(self) -> str | None:
        """Reasons why a resumed training is not exactly the one that was stopped; None if it is.

        In one that was not stopped: why it could not go on exactly.
        """
        return "; ".join(self._reasons()) or None

    def _reasons(self) -> list[str]:
        return [*([] if self._saved is None else self._saved.inexact), *self._training.cursor.reasons]

    def _tell(self) -> None:
        """Say once what is not exact, as soon as it is known."""
        inexact = self.inexact
        if inexact is None or inexact == self._told:
            return
        self._told = inexact
        if self.resumed:
            place.say("resumed at step %d, but not exactly: %s" % (self._first_step, inexact))
        else:
            place.say("after a stop this training cannot go on exactly: %s" % inexact)
        notes.write(notes.INEXACT, self.step, self._reasons())

    @property
    def batch(self) -> int:
        """Batches that the loop has taken of this epoch, if the loader is a `DataLoader`; else 0.

        A loop that counts its batches goes on from there: ``enumerate(loader, start=run.batch)``.
        """
        return self._training.cursor.taken

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs from where the training is, up to `count`; tells them to all that have a `set_epoch`."""
        resumed = self._saved
        while self.epoch < count:
            epoch = self.epoch
            if resumed is not None:
                # What the script drew since it attached belongs to no place in the training.
                random_streams.restore(resumed.random)
            self._training.cursor.begin(epoch, resumed=resumed is not None)
            resumed = None
            yield epoch
            if self.epoch == epoch:
                self.end_epoch()
            if self.epoch < count:
                self.checkpoint_if_due()
        self.finish()

    def end_epoch(self) -> None:
        """The epoch is over: a checkpoint taken from here on resumes at the beginning of the next."""
        self.epoch += 1
        self._training.cursor.end()
        self._tell()

    def advance(self) -> None:
        """Count one step of the optimizer."""
        self.step += 1
        self._training.gradients.reported()
        self._training.cursor.step()
        self._tell()

    def report(
        self,
        step: int | None = None,
        total_steps: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """One step of the optimizer is done: counts it, records its metrics, takes a checkpoint if one is due."""
        self.advance()
        if step is not None:
            self.step = int(step)
        values.update(metrics or {})
        self._record(total_steps, values)
        self.checkpoint_if_due(values)

    def _record(self, total_steps: int | None, values: Mapping[str, Any]) -> None:
        if place.rank() == 0:
            metrics.report(self.step, self.total_steps if total_steps is None else total_steps, values)

    def checkpoint_if_due(self, metrics: Mapping[str, Any] | None = None) -> bool:
        """Take a checkpoint if one is due, was asked for, or the job is being stopped; then leave.

        All ranks call it at the same places: `report` does at each step, a long evaluation should. Answers whether
        one was taken. After the last batch of an epoch none is: what follows the loop belongs to that epoch, and
        `epochs` asks when it is done. In a run that resumes from one taken there, the loop has no batch left.
        """
        cursor = self._training.cursor
        # Agreed, because loaders may differ in length.
        if not (control.should_checkpoint() and collective.all_true(not (cursor.at_last or cursor.trailing))):
            return False
        self._save(metrics or {})
        return True

    def save(self, metrics: Mapping[str, Any] | None = None) -> bool:
        """Take a checkpoint now. After the loop over a `DataLoader` has ended, the epoch counts as done.

        One that fails is told of and ends no training; answers whether it was taken, or is being written.
        """
        if self._training.cursor.exhausted:
            self.end_epoch()
        return self._save(metrics or {})

    def _save(self, metrics: Mapping[str, Any]) -> bool:
        position = state.Position(step=self.step, epoch=self.epoch)
        taken = self._saver.save(self._training, position, metrics)
        if taken:
            self._saved_step = self.step
        return taken

    def finish(self) -> str | None:
        """Take a last checkpoint, on the queue unless the spec forbids it, and wait until it is safe.

        Answers why it is not, the same way on all ranks, which call it. `epochs` does so at its end.
        """
        if control.periodic() and collective.all_true(self.step > self._saved_step):
            self._save({})
        return self._saver.wait()
