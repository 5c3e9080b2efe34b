"""Lightning's Trainer without a changed line: a callback that it loads through the entry point of its own kind.

It reports progress and what is logged, takes a checkpoint at the end of a batch when one is due or asked for, leaves
after it if the job is being stopped, and has `fit` go on from the checkpoint that the attempt resumes from. Beside
Lightning's own file such a checkpoint holds each rank's random streams and place in the data.
"""

from __future__ import annotations

import importlib
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

from torchyard.injob import (
    adoption,
    checkpoints,
    control,
    cursor,
    cursors,
    lightning_trainer,
    metrics,
    notes,
    place,
    state,
)
from torchyard.injob.gradients import Gradients
from torchyard.injob.modules import Models
from torchyard.injob.optimizers import Optimizers
from torchyard.injob.reasons import CheckpointReason
from torchyard.injob.staging import taken

_CLASSES = {"lightning.pytorch": "LightningCallback", "pytorch_lightning": "PytorchLightningCallback"}
_NO_STREAMS = CheckpointReason("no-streams")
#: A sign of life is given so often where nothing is logged, as in a long validation.
_SIGN_S = 30.0


def callbacks(package: str) -> list[Any]:
    """The callback for the Trainer of ``lightning.pytorch`` or ``pytorch_lightning``; none off the queue."""
    if place.current() is None:
        return []
    try:
        return [_class(package)()]
    except Exception as error:  # noqa: BLE001 (the training must not fail for want of it)
        place.say("no checkpoints and metrics of %s: %s: %s" % (package, type(error).__name__, error))
        return []


def _class(package: str) -> Any:
    """The callback's class, which is one of this module: strategies that spawn their ranks pickle it."""
    name = _CLASSES[package]
    if name not in globals():
        base = importlib.import_module(package).Callback
        globals()[name] = type(name, (LightningHooks, base), {"__module__": __name__})
    return globals()[name]


def __getattr__(name: str) -> Any:
    for package, known in _CLASSES.items():
        if name == known:
            return _class(package)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class _FitCounts:
    """Counts of this process: a script may call `fit` several times, with one Trainer or many."""

    #: Calls of `fit` that have begun.
    fits = 0
    #: Steps of those that have ended.
    steps = 0


class LightningHooks:
    """The callback's hooks. Every rank makes the same calls."""

    def __init__(self) -> None:
        self._fit = 0
        self._step = -1
        self._total: int | None = None
        self._epoch: int | None = None
        self._cursor = cursor.Cursor()
        self._saved: state.LoadedCheckpoint | None = None
        self._deferred = False
        self._told_at = float("-inf")
        self._save_file: Callable[..., None]
        #: Training loaders; with several no place is known.
        self._loaders = 0
        #: Values that were reported and their steps, by name: each is told once.
        self._told: dict[str, tuple[int, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """State for strategies that spawn their ranks, without what is of this process alone."""
        return {name: value for name, value in vars(self).items() if name not in {"_cursor", "_save_file"}}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept, _cursor=cursor.Cursor())

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 (Lightning's own names)
        if stage != "fit":
            return
        if told := lightning_trainer.trains_alone(trainer, int(os.environ.get("WORLD_SIZE", "1"))):
            place.say(told)
        control.choose()
        _FitCounts.fits += 1
        self._fit, self._loaders = _FitCounts.fits, 0
        folder = checkpoints.restore()
        if folder is not None:
            self._resume(trainer, str(folder))
        lightning_trainer.wrap(trainer, "save_checkpoint", lambda save: self._saving(trainer, save))
        lightning_trainer.wrap(
            trainer.strategy, "process_dataloader", lambda process: self._processing(trainer, process)
        )

    def _processing(self, trainer: Any, process: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The strategy's last word on each loader, before that is iterated."""

        def process_dataloader(dataloader: Any) -> Any:
            loader = process(dataloader)
            if trainer.training:
                self._follow(trainer, loader)
            return loader

        return process_dataloader

    def _saving(self, trainer: Any, save: Callable[..., None]) -> Callable[..., None]:
        """The Trainer's way to write its own checkpoints, which the script's callbacks take; they are the job's too."""
        self._save_file = save

        def save_checkpoint(filepath: Any, weights_only: Any = None, *args: Any, **options: Any) -> None:
            save(filepath, weights_only, *args, **options)
            if not (weights_only or trainer.interrupted or "://" in str(filepath)):
                self._adopt(trainer, str(filepath))

        return save_checkpoint

    def _adopt(self, trainer: Any, path: str) -> None:
        step = _FitCounts.steps + trainer.global_step
        try:
            adoption.adopt(step, path, lightning_trainer.scalars(trainer), leaves=False)
        except Exception as error:  # noqa: BLE001 (the script's own file is there all the same)
            place.say("the checkpoint of step %d is not registered: %s" % (step, error))

    def _resume(self, trainer: Any, folder: str) -> None:
        found = lightning_trainer.file_in(folder)
        if found is None:
            return
        if os.path.exists(os.path.join(folder, state.TRAINING)):
            saved = state.LoadedCheckpoint(folder)
            if saved.extra.get("fit") != self._fit:
                return
            self._saved = saved
        elif self._fit == 1:
            place.say("resumed from a checkpoint of Lightning's own, not exactly: " + _NO_STREAMS)
            notes.write(notes.INEXACT, 0, [_NO_STREAMS])
        else:
            return
        connector = getattr(trainer, "_checkpoint_connector", None)
        if connector is None:
            place.say("this version of Lightning cannot be told what to resume from: the training begins anew")
            return
        lightning_trainer.wrap(
            connector, "resume_start", lambda start: lightning_trainer.resuming_from(connector, start, found)
        )

    def _follow(self, trainer: Any, loader: Any) -> None:
        """A loader is ready to be iterated: the training's is followed, and resumed where it was."""
        self._loaders += 1
        resumed, self._saved = self._saved, None
        if self._loaders > 1 or (resumed is not None and resumed.extra["loaders"] > 1):
            self._cursor = cursor.Cursor(loader)
        else:
            self._cursor = cursors.of(loader)
        if resumed is not None:
            resumed.load(self._training())
        self._begin(trainer, resumed=resumed is not None)
        if resumed is not None:
            self._say_inexact(resumed)

    def _say_inexact(self, resumed: state.LoadedCheckpoint) -> None:
        reasons = [*resumed.inexact, *self._cursor.reasons]
        if not reasons:
            # Lightning knows nothing of the place that is kept beside its file.
            warnings.filterwarnings("ignore", message="You're resuming from a checkpoint that ended before the epoch")
        elif place.rank() == 0:
            place.say("resumed at step %d, but not exactly: %s" % (resumed.position.step, "; ".join(reasons)))
            notes.write(notes.INEXACT, resumed.position.step, reasons)

    def _begin(self, trainer: Any, *, resumed: bool) -> None:
        self._epoch = trainer.current_epoch
        self._cursor.begin(trainer.current_epoch, resumed=resumed)

    def _training(self) -> state.TrainingState:
        """Files of a checkpoint beside Lightning's own."""
        return state.TrainingState(
            models=Models([]),
            optimizers=Optimizers([]),
            gradients=Gradients([]),  # it asks for checkpoints after steps alone
            stateful={},
            ranks={},
            cursor=self._cursor,
            sharded=False,
            extra={"fit": self._fit, "loaders": self._loaders},
        )

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        steps = trainer.estimated_stepping_batches
        self._total = None if steps in {float("inf"), -1} else int(steps) + _FitCounts.steps
        self._step = trainer.global_step

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._report(trainer)
        self._loaders = min(self._loaders, 1)  # where loaders are made anew they are counted anew
        if trainer.current_epoch != self._epoch:
            self._cursor.end()
            self._begin(trainer, resumed=False)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        step = trainer.global_step
        if step == self._step:
            return  # gradients are still being summed up
        self._step = step
        self._cursor.step()
        self._report(trainer, progress=True)
        if control.should_checkpoint() and not self._defers(trainer):
            self._save(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if not trainer.sanity_checking:
            self._report(trainer)

    def on_validation_batch_end(self, trainer: Any, *_: Any) -> None:
        self._live(trainer)

    def on_test_batch_end(self, trainer: Any, *_: Any) -> None:
        self._live(trainer)

    def on_predict_batch_end(self, trainer: Any, *_: Any) -> None:
        self._live(trainer)

    def _live(self, trainer: Any) -> None:
        now = time.monotonic()
        if place.rank() == 0 and now - self._told_at >= _SIGN_S:
            self._told_at = now
            metrics.report(_FitCounts.steps + trainer.global_step, self._total, {"epoch": trainer.current_epoch})

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._report(trainer)
        try:
            adoption.adopt_the_last()
        except Exception as error:  # noqa: BLE001 (the training is done)
            place.say("the last checkpoint is not registered: %s" % error)
        _FitCounts.steps += trainer.global_step

    def _defers(self, trainer: Any) -> bool:
        """Return whether to wait for the next step: a run that resumes from here would leave out a validation
        or the epoch's end, which are due now. Never twice.
        """
        batch = trainer.fit_loop.batch_idx + 1
        check = getattr(trainer, "val_check_batch", None)
        due = batch >= trainer.num_training_batches or (isinstance(check, int) and check > 0 and batch % check == 0)
        self._deferred = due and not self._deferred
        return self._deferred

    def _save(self, trainer: Any) -> None:
        self._deferred = False
        step = _FitCounts.steps + self._step
        position = state.Position(step=step, epoch=trainer.current_epoch)
        stopping, began = control.stopping(), time.monotonic()
        taking = checkpoints.CheckpointWriter(step, lightning_trainer.scalars(trainer))
        try:
            with taking as folder:
                lightning_trainer.write(trainer.strategy, self._save_file, str(folder / lightning_trainer.FILE))
                state.take(self._training(), position, taken).write(str(folder))
        except SystemExit:
            lightning_trainer.end_launcher(trainer)
            raise
        except Exception as error:
            if stopping:
                raise
            notes.checkpoint_failed(step, error)
            return
        control.measured(time.monotonic() - began, 0.0, taking.size)

    def _report(self, trainer: Any, *, progress: bool = False) -> None:
        # On all ranks, since Lightning may sum values up over them.
        found = dict(lightning_trainer.named_values(trainer.callback_metrics))
        step = _FitCounts.steps + trainer.global_step
        fresh = {name: value for name, value in found.items() if not self._is_told(name, step, value)}
        self._told.update({name: (step, value) for name, value in fresh.items()})
        if place.rank() != 0:
            return
        if progress:
            fresh["epoch"] = trainer.current_epoch
        self._told_at = time.monotonic()
        if fresh:
            metrics.report(step, self._total, fresh)

    def _is_told(self, name: str, step: int, value: Any) -> bool:
        """Return whether it was reported; at an epoch's end Lightning has the last step's values in new objects."""
        at, told = self._told.get(name, (None, None))
        return told is value or (at == step and _equal(told, value))


def _equal(one: Any, other: Any) -> bool:
    try:
        return repr(float(one)) == repr(float(other))  # not-a-number is like itself
    except (TypeError, ValueError, RuntimeError):
        return False
