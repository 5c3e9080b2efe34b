"""Loops with Accelerate without a changed line: each `save_state` is committed as a checkpoint of the job.

Only the script knows at which states it can go on, since its place in the training is in its own variables. So a job
that is being stopped trains on to its next `save_state` and leaves there, if that is due in time.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from torchyard.injob import adoption, checkpoints, control, layout, metrics, place
from torchyard.injob.reasons import CheckpointReason

#: The next state may take so much longer than the last.
_MARGIN = 1.25


class _Steps:
    """Steps of the optimizers, over all attempts, as torch tells of them."""

    done = 0

    @classmethod
    def count(cls, *_: Any) -> None:
        cls.done += 1


class SaveSchedule:
    """Times at which this process saves its state, and whether a stop can wait for the next."""

    def __init__(self, control_file: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._control = control.ControlFile(control_file)
        self._clock = clock
        #: The last state, at first the first step.
        self._last: float | None = None
        #: Seconds from one state to the next, once there is one.
        self._every: float | None = None
        self._look_at = 0.0
        self._deadline: float | None = None

    def saved(self) -> None:
        """A state has been saved."""
        now = self._clock()
        if self._last is not None:
            self._every = now - self._last
        self._last = now

    def hopeless(self) -> bool:
        """Return whether the job is being stopped, and will be killed before it saves again; asked after each step.

        Before the first state nobody waits: the job has not polled.
        """
        now = self._clock()
        if self._last is None:
            self._last = now
        if self._every is None or now < self._look_at:
            return False
        self._look_at = now + control.POLL_SECONDS
        request = self._control.read()
        if request is None or request.action != "stop":
            return False
        if self._deadline is None:
            self._deadline = now + request.grace_s
        return self._last + _MARGIN * self._every > self._deadline


def follow(module: Any) -> None:
    """Called with ``accelerate.accelerator`` once that is imported."""
    attempt = place.current()
    if attempt is None:
        return
    found = adoption.restored()
    _Steps.done = 0 if found is None else found.step
    saves = SaveSchedule(attempt.path(layout.CONTROL))

    def stepped(*_: Any) -> None:
        _Steps.count()
        if place.rank() == 0 and saves.hopeless():
            _give_up()

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(stepped)
    kind = module.Accelerator
    kind.save_state = _registering(kind.save_state, saves)
    kind.log = _reporting(kind.log)


def _give_up() -> None:
    """Leave as by the signal that a job gets which never looks; the launcher ends the other ranks."""
    words = CheckpointReason("save-late")
    place.say("stopped without a new state: " + words)
    checkpoints.note_unsaved(words)
    os.kill(os.getpid(), signal.SIGTERM)


def _registering(save_state: Callable[..., Any], saves: SaveSchedule) -> Callable[..., Any]:
    """`save_state`, after which a job leaves that is being stopped."""

    @functools.wraps(save_state)
    def wrapped(accelerator: Any, *args: Any, **options: Any) -> Any:
        path = save_state(accelerator, *args, **options)
        if isinstance(path, (str, os.PathLike)):
            try:
                adoption.adopt(_Steps.done, os.fspath(path), wanted=control.should_checkpoint())
            except Exception as error:  # noqa: BLE001 (the script's own state is there all the same)
                place.say("the state of step %d is not registered: %s" % (_Steps.done, error))
        saves.saved()
        return path

    return wrapped


def _reporting(log: Callable[..., Any]) -> Callable[..., Any]:
    """`log`, whose values are reported where no tracker takes them."""

    @functools.wraps(log)
    def wrapped(
        accelerator: Any, values: Mapping[str, Any], step: int | None = None, *args: Any, **options: Any
    ) -> Any:
        if not accelerator.trackers and accelerator.is_main_process:
            metrics.report(_Steps.done if step is None else step, None, dict(values))
        return log(accelerator, values, step, *args, **options)

    return wrapped
