"""The Trainer of transformers without a changed line.

It gets one more of its own callbacks: it reports what is logged and the progress, asks for one of the
Trainer's own checkpoints when one is due or asked for, and commits each as the job's. `train` goes on from the one that
the attempt resumes from.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchyard.injob import adoption, control, layout, metrics, notes, place

#: The callback's class.
CALLBACK = "TorchYardCallback"
#: What tells that a folder is a checkpoint of the Trainer.
TRAINER_STATE = "trainer_state.json"
#: What the Trainer replaces in names that it gives to MLflow, which get no prefix.
_NO_MLFLOW_NAME = re.compile(r"[^0-9A-Za-z_\-. :/]")
#: A sign of life is given so often where nothing is logged, as in a long evaluation.
_SIGN_S = 30.0


def follow_trainer(module: Any) -> None:
    """Called with ``transformers.trainer`` once that is imported."""
    # One of this module, since a Trainer may be pickled with it, for a process that is spawned say.
    globals()[CALLBACK] = type(CALLBACK, (TrainerHooks, module.TrainerCallback), {"__module__": __name__})
    module.DEFAULT_CALLBACKS.append(globals()[CALLBACK])
    module.Trainer.train = _resuming(module.Trainer.train)


def __getattr__(name: str) -> Any:
    if name == CALLBACK:
        importlib.import_module("transformers.trainer")  # after which it is here
    if name in globals():
        return globals()[name]
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class TrainerHooks:
    """The callback's hooks, with the Trainer's own names. Every rank makes the same calls."""

    #: This step's checkpoint was asked for by the queue.
    _asked = False
    _asked_at = 0.0
    _told_at = float("-inf")

    def __init__(self) -> None:
        #: The Trainer's names of what it has logged, and ours.
        self._names: dict[str, str] = {}

    def on_train_begin(self, _args: Any, _state: Any, _flow: Any, **_: Any) -> None:
        control.choose()

    def on_step_end(self, _args: Any, state: Any, flow: Any, **_: Any) -> None:
        if place.rank() == 0:
            self._told(state)
        self._asked = control.should_checkpoint()
        self._asked_at = time.monotonic()
        if self._asked:
            flow.should_save = True

    def _told(self, state: Any) -> None:
        self._told_at = time.monotonic()
        metrics.report(state.global_step, state.max_steps, {"epoch": state.epoch})

    def on_prediction_step(self, _args: Any, state: Any, _flow: Any, **_: Any) -> None:
        if place.rank() == 0 and time.monotonic() - self._told_at >= _SIGN_S:
            self._told(state)

    def on_log(self, args: Any, state: Any, _flow: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        values = {_name(name): value for name, value in _numbers(logs or {}).items()}
        if values and place.rank() == 0:
            self._tell_names(logs or {}, getattr(args, "report_to", ()))
            metrics.report(state.global_step, state.max_steps, values)

    def _tell_names(self, logs: Mapping[str, Any], trackers: Sequence[str]) -> None:
        """Tell the node, before a tracker logs them, which of its names are those of what is reported."""
        names = {name: _name(name) for name in _numbers(logs)}
        if self._names.keys() >= names.keys():
            return
        self._names.update(names)
        told = {name: {"train/epoch": "epoch"} for name in ("tensorboard", "wandb", "trackio")}
        if {"mlflow", "dagshub"} & set(trackers):
            told["mlflow"] = {_NO_MLFLOW_NAME.sub("_", name): new for name, new in self._names.items()}
        notes.mark(layout.renamed_mark(place.rank()), told)

    def on_save(self, args: Any, state: Any, _flow: Any, **_: Any) -> None:
        asked, self._asked = self._asked, False
        stopping = asked and control.stopping()
        path, size = os.path.join(args.output_dir, "checkpoint-%d" % state.global_step), 0
        try:
            size = adoption.adopt(state.global_step, path, _logged(state), wanted=asked)
        except Exception as error:  # the Trainer's own checkpoint is there all the same
            if stopping:
                raise
            notes.checkpoint_failed(state.global_step, error)
        if asked:
            control.measured(time.monotonic() - self._asked_at, 0.0, size)

    def on_train_end(self, _args: Any, _state: Any, _flow: Any, **_: Any) -> None:
        try:
            adoption.adopt_the_last()
        except Exception as error:  # noqa: BLE001 (the training is done)
            place.say("the last checkpoint is not registered: %s" % error)


def _name(name: str) -> str:
    """A logged value's name as the Trainer gives it to trackers: what comes from both is then one curve."""
    for part in ("eval", "test"):
        if name.startswith(part + "_"):
            return "%s/%s" % (part, name[len(part) + 1 :])
    return "train/" + name


def _numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in logs.items() if type(value) in {int, float} and name not in {"epoch", "step"}
    }


def _logged(state: Any) -> dict[str, Any]:
    """Return what was logged at this step."""
    entries = [entry for entry in state.log_history if entry.get("step") == state.global_step]
    return {name: value for entry in entries for name, value in _numbers(entry).items()}


def _resuming(train: Callable[..., Any]) -> Callable[..., Any]:
    """`train` that goes on from the job's newest checkpoint, whatever it is given."""
    found = adoption.restored()
    if found is None or not os.path.exists(os.path.join(found.path, TRAINER_STATE)):
        return train
    left = [found]

    @functools.wraps(train)
    def wrapped(trainer: Any, resume_from_checkpoint: Any = None, *args: Any, **options: Any) -> Any:
        if left and adoption.place_of(trainer.args.output_dir) == os.path.dirname(left[0].place):
            resume_from_checkpoint = left.pop().path
        return train(trainer, resume_from_checkpoint, *args, **options)

    return wrapped
