"""Parts of Lightning's Trainer that the callback reads and wraps: its checkpoint files, its launcher, its metrics."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchyard.injob import place

#: Lightning's own file in a checkpoint of this callback.
FILE = "lightning.ckpt"


def wrap(owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
    """Put something around a method of this one object; not around what an earlier `fit` has put there."""
    vars(owner).pop(name, None)
    setattr(owner, name, wrapper(getattr(owner, name)))


def file_in(folder: str) -> str | None:
    """Lightning's file in a checkpoint: this callback's, or one that the script's own callback wrote."""
    own = os.path.join(folder, FILE)
    if os.path.exists(own):
        return own
    found = [
        os.path.join(parent, name)
        for parent, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if name.endswith(".ckpt")
    ]
    return found[0] if len(found) == 1 else None


def resuming_from(connector: Any, resume_start: Callable[..., Any], path: str) -> Callable[..., Any]:
    """Lightning's reading of a checkpoint, once of this one whatever `fit` was given: it is the newest of the job."""
    options = {"weights_only": False} if "weights_only" in inspect.signature(resume_start).parameters else {}

    def wrapped(checkpoint_path: Any = None, *_: Any, **__: Any) -> Any:
        del connector.resume_start
        if checkpoint_path and place.rank() == 0:
            place.say("the job goes on from its own checkpoint instead of %s" % checkpoint_path)
        return resume_start(path, **options)

    return wrapped


def write(strategy: Any, write: Callable[..., None], path: str) -> None:
    """Lightning's own file, written by all ranks. One that fails alone says so only when all are done."""
    failures: list[Exception] = []
    save = strategy.save_checkpoint

    def guarded(*args: Any, **options: Any) -> None:
        try:
            save(*args, **options)
        except Exception as error:  # noqa: BLE001 (raised below: the others wait at a barrier)
            failures.append(error)

    strategy.save_checkpoint = guarded
    try:
        write(path, weights_only=False)
    finally:
        del strategy.save_checkpoint
    if failures:
        raise failures[0]


def end_launcher(trainer: Any) -> None:
    """End the process that spawned the ranks: Lightning would wait there for a result that rank 0 does not have."""
    parent = multiprocessing.parent_process()
    spawned = type(getattr(trainer.strategy, "launcher", None)).__name__ == "_MultiProcessingLauncher"
    if spawned and parent is not None and parent.pid is not None and place.rank() == 0:
        os.kill(parent.pid, signal.SIGTERM)


def named_values(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values by the names that loggers give them: what is logged by step and by epoch has two."""
    for name, value in values.items():
        if name + "_step" not in values:
            yield name, value


def scalars(trainer: Any) -> dict[str, Any]:
    return {
        name: value for name, value in named_values(trainer.callback_metrics) if getattr(value, "numel", int)() == 1
    }


def trains_alone(trainer: Any, ranks: int) -> str | None:
    """Words on a Trainer of one process in each of several ranks, as `devices="auto"` makes on a CPU."""
    if ranks == 1 or trainer.world_size != 1:
        return None
    return (
        "this Trainer has one process, and there are %d ranks: each trains a copy of its own, and no checkpoint is "
        "kept. Say Trainer(devices=%s), or ask for one GPU"
    ) % (ranks, os.environ.get("LOCAL_WORLD_SIZE", str(ranks)))
