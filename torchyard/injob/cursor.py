"""Place of the training in its data, for every kind of loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchyard.injob.reasons import CheckpointReason


class Cursor:
    """The place in a loader that does not tell it, or in none: an epoch is begun anew."""

    #: The loop has asked for a batch after the last one.
    exhausted = False
    #: The loop has taken the last batch; false where they are not counted.
    at_last = False
    #: Batches that the loop has taken of this epoch; 0 where they are not counted.
    taken = 0
    #: A step was reported after the loop's end, where a run that resumes from here would report it again.
    trailing = False

    def __init__(self, loader: Any = None) -> None:
        self._find: Callable[[], Any] = lambda: loader
        self._inexact: list[str] = []
        if loader is not None:
            self._inexact.append(CheckpointReason("placeless", kind=type(loader).__name__))

    @property
    def reasons(self) -> list[str]:
        """Reasons why a resumed run is not exactly the one that was stopped, as far as the data goes."""
        return self._inexact

    @property
    def _loader(self) -> Any:
        return self._find()

    @property
    def random(self) -> dict[str, Any] | None:
        """The random streams that belong to the place, where they are not those of this moment."""
        return None

    def step(self) -> None:
        """A step of the optimizer is done with the batches that were taken."""

    def state(self) -> Any:
        """The place, as plain data."""
        return None

    def load(self, states: Sequence[Any], random: dict[str, Any], *, other_ranks: bool) -> None:
        """Go to a place.

        `states` has this rank's alone; with `other_ranks`, when there were more or fewer of them, those of all.
        `random` is where this rank's streams shall be there.
        """

    def begin(self, epoch: int, *, resumed: bool) -> None:  # noqa: ARG002 (others need it)
        """An epoch begins, or goes on; all that have a `set_epoch` are told."""
        for target in _with_epochs(self._loader):
            target.set_epoch(epoch)

    def end(self) -> None:
        """The epoch is over: the next place is the beginning of another one."""


class StatefulCursor(Cursor):
    """The place in a loader or sampler that keeps it itself, with `state_dict` and `load_state_dict`."""

    def __init__(self, loader: Any) -> None:
        super().__init__()
        self._find = lambda: loader

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, states: Sequence[Any], random: dict[str, Any], *, other_ranks: bool) -> None:  # noqa: ARG002
        if other_ranks and any(state != states[0] for state in states):
            self._inexact.append(CheckpointReason("other-places"))
        else:
            self._loader.load_state_dict(states[0])

    def begin(self, epoch: int, *, resumed: bool) -> None:
        for target in _with_epochs(self._loader):
            # To the loader itself a `set_epoch` may mean the beginning of the epoch.
            if not (resumed and target is self._loader):
                target.set_epoch(epoch)


def _with_epochs(loader: Any) -> Iterator[Any]:
    batches = getattr(loader, "batch_sampler", None)
    parts = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    seen = set()
    for part in (*parts, getattr(loader, "dataset", None)):
        if id(part) not in seen and callable(getattr(part, "set_epoch", None)):
            seen.add(id(part))
            yield part
