"""Place of this process: inside an attempt, or off the queue."""

from __future__ import annotations

import functools
import os
import sys

from torchyard.injob import layout

TYPE_CHECKING = False  # see torchyard/__init__.py
if TYPE_CHECKING:
    from typing import Any


class CurrentAttempt:  # no dataclass, no NamedTuple: what those import takes longer than all else here
    """The attempt that this process belongs to."""

    __slots__ = ("checkpoint_every", "chooses", "folder")

    def __init__(self, folder: str, checkpoint_every: float | None, chooses: bool = True) -> None:
        self.folder = folder
        #: Seconds after which a checkpoint is due; None: only when asked for, or as `attach` chooses.
        self.checkpoint_every = checkpoint_every
        #: Whether `attach` may choose.
        self.chooses = chooses

    def path(self, name: str) -> str:
        """Absolute path of a name from `layout`."""
        return os.path.join(self.folder, name)


@functools.lru_cache(maxsize=None)
def current() -> CurrentAttempt | None:
    """The attempt, or None off the queue. The environment is read once."""
    folder = os.environ.get(layout.ATTEMPT_DIR, "")
    if not folder or not os.path.isdir(os.path.join(folder, layout.JOB)):
        return None
    every = os.environ.get(layout.CHECKPOINT_EVERY)
    never = every == layout.NEVER
    return CurrentAttempt(
        folder=folder, checkpoint_every=float(every) if every and not never else None, chooses=not never
    )


def process_group() -> Any:
    """`torch.distributed` if the script has imported and initialised it, else None."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def rank() -> int:
    """Rank of this process: the process group's, else the launcher's, else 0."""
    distributed = process_group()
    if distributed is not None:
        return int(distributed.get_rank())
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else 0


def leads() -> bool:
    """Return whether this rank makes and commits the checkpoints of its node's disk: rank 0, the first of each other
    node of the queue, which has a disk of its own. Off the queue the nodes may well share one.
    """
    return rank() == 0 or (current() is not None and _first_of_node())


def _first_of_node() -> bool:
    """Variables that the launcher has set, unless the script has started ranks of its own, which inherit them."""
    return os.environ.get("LOCAL_RANK") == "0" and os.environ.get("RANK") == str(rank())


def say(message: str) -> None:
    """A line on stderr; a full disk under it must not end a training."""
    try:
        print("torchyard: " + message, file=sys.stderr, flush=True)  # noqa: T201 (it goes to the rank's log)
    except (OSError, ValueError):
        return
