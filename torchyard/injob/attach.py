"""`attach`: metrics, checkpoints, exact resume and a clean stop for any PyTorch training loop."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchyard.injob import chance, checkpoints, control, cursor, metrics, place, saver, shards, state
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
) -> Run:
    importlib.import_module("torch.utils.data")
    models = _several(model)
    training = state.State(
        models=Models(models),
        optimizers=Optimizers(_several(optimizer)),
        stateful={name: each for name, each in stateful.items() if each is not None},
        ranks={name: each for name, each in (ranks or {}).items() if each is not None},
        cursor=cursor.of(loader),
        sharded=shards.wanted(models) if sharded is None else sharded,
        extra=dict(extra or {}),
    )
    state.check(training)
    folder = checkpoints.restore() if restore is None else restore
    saved = None if folder is None else state.Saved(os.fspath(folder))
    if saved is not None:
        if check is not None:
            check(saved.extra)
        saved.load(training)
    return Run(training, saved, asynchronous=asynchronous)


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Run:
    """A training that is followed from its loop; made by `attach`."""

    def __init__(self, training: state.State, saved: state.Saved | None, *, asynchronous: bool) -> None:
        position = state.Position() if saved is None else saved.position
        #: Steps of the optimizer done, over all attempts.
        self.step = position.step
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
            chance.restore(saved.random)

    @property
    def inexact(self) -> str | None:
        """Why a resumed training is not exactly the one that was stopped; None if it is."""
        reasons = [] if self._saved is None else list(self._saved.inexact)
        if self._training.cursor.inexact is not None:
            reasons.append(self._training.cursor.inexact)
        return "; ".join(reasons) or None

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
            self._training.cursor.begin(epoch, resumed=resumed is not None)
            if resumed is not None:
                # What the script drew since it attached belongs to no place in the training.
                chance.restore(resumed.random)
                resumed = None
            yield epoch
            if self.epoch == epoch:
                self.end_epoch()
        self.finish()

    def end_epoch(self) -> None:
        """The epoch is over: a checkpoint taken from here on resumes at the beginning of the next."""
        self.epoch += 1
        self._training.cursor.end()

    def advance(self) -> None:
        """Counts one step of the optimizer."""
        self.step += 1

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
        """Takes a checkpoint if one is due, was asked for, or the job is being stopped; then it leaves.

        All ranks call it at the same places. Answers whether one was taken.
        """
        if not control.should_checkpoint():
            return False
        self._save(metrics or {})
        return True

    def save(self, metrics: Mapping[str, Any] | None = None) -> None:
        """Takes a checkpoint now. After the loop over a `DataLoader` has ended, the epoch counts as done."""
        if self._training.cursor.exhausted:
            self.end_epoch()
        self._save(metrics or {})

    def _save(self, metrics: Mapping[str, Any]) -> None:
        position = state.Position(step=self.step, epoch=self.epoch)
        self._saver.save(self._training, position, metrics)

    def finish(self) -> None:
        """Waits until the last checkpoint is safe. All ranks call it."""
        self._saver.settle()
