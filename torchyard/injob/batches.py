"""The place in a `DataLoader`: how many batches the loop has taken, and where chance was when their order was drawn.

Counted is what the loop takes, not what loader processes have read ahead. A resumed epoch draws its order as it was
drawn and leaves out the batches that were taken, without loading them.
"""

from __future__ import annotations

import collections
import itertools
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchyard.injob import chance, dealing, place
from torchyard.injob.cursor import Cursor


@dataclass
class Pass:
    """One way through the loader."""

    #: Batches that the loop has taken of it, with those taken before the run was resumed.
    taken: int = 0
    #: Samples that were taken of this epoch while it was dealt to other ranks, or in other batches.
    consumed: int = 0
    #: Where the streams were before the order was drawn.
    drawn: dict[str, Any] | None = None
    #: Where they shall be after it is drawn again: this pass goes on with one from a checkpoint.
    after: dict[str, Any] | None = None
    exhausted: bool = False
    #: Where the streams were when the loop asked for a batch after the last.
    random_at_end: dict[str, Any] | None = None


class Batches(Cursor):
    """Follows a `DataLoader`: its class is replaced by one that counts, which changes nothing else of it."""

    def __init__(self, loader: Any) -> None:
        super().__init__()
        # Weakly: a loader in a cycle would end its processes late, at a collection that may run in another's.
        self._find = weakref.ref(loader)
        self._generators = _generators(loader)
        self._pass = Pass()
        self._resumed: Pass | None = None
        self._next: Pass | None = None
        loader.__class__ = _counted(type(loader))
        loader._torchyard = self

    @property
    def exhausted(self) -> bool:  # type: ignore[override]
        return self._next is None and self._pass.exhausted

    @property
    def at_last(self) -> bool:  # type: ignore[override]
        try:
            return self._next is None and not self.exhausted and self.taken >= len(self._loader)
        except TypeError:  # an iterable need not know its length
            return False

    @property
    def taken(self) -> int:  # type: ignore[override]
        return (self._next or self._pass).taken

    @property
    def random(self) -> dict[str, Any] | None:
        return self._pass.random_at_end if self._next is None else self._next.after

    def state(self) -> Any:
        now = self._next or self._pass
        return {
            "taken": now.taken,
            "consumed": now.consumed,
            "drawn": now.drawn,
            "generators": _states(self._generators),
            "replicas": dealing.replicas(self._loader),
            "batch_size": dealing.batch_size(self._loader),
        }

    def load(self, states: Sequence[Any], random: dict[str, Any], *, other_ranks: bool) -> None:
        state = states[0]
        replicas, batch_size = dealing.replicas(self._loader), dealing.batch_size(self._loader)
        same = replicas == state["replicas"] and batch_size == state["batch_size"]
        if same and not (other_ranks and replicas is None):
            goal = Pass(taken=state["taken"], consumed=state["consumed"], drawn=state["drawn"])
        elif replicas is not None and state["replicas"] is not None:
            goal = Pass(consumed=dealing.consumed(self._loader, state))
        else:
            goal = Pass()
            if state["taken"]:
                self.inexact = "its batches are not those of the checkpoint (number of ranks or batch size): "
                self.inexact += "the epoch is begun anew"
        goal.after = random
        if goal.taken and not _has_order(self._loader):
            self.inexact = "the data set is an iterable: its first %d batches are read again and dropped" % goal.taken
        self._resumed = self._next = goal
        _set(self._generators, state["generators"])

    def begin(self, epoch: int, *, resumed: bool) -> None:
        super().begin(epoch, resumed=resumed)
        self._pass = Pass()
        # Again, if the loader was iterated between: the epoch itself is what is resumed.
        self._next = self._resumed if resumed else None

    def end(self) -> None:
        self._pass = Pass()
        self._resumed = self._next = None

    # What the loader's class calls.

    def start(self) -> None:
        """The loop asks the loader for an iterator."""
        # A copy: the script may look into the loader before its epochs, which go on from the same place.
        self._pass, self._next = replace(self._next or Pass()), None
        if not _has_order(self._loader):
            self._draw()

    def indices(self, sampler: Iterable[Any]) -> Iterator[Any]:
        """The index sampler's batches; in a resumed pass those that are left."""
        now = self._pass
        resumed = now.after if now.consumed or now.drawn else None
        self._draw()
        if now.consumed:
            sampler = dealing.rest(self._loader, now.consumed)
        rest = iter(sampler)
        first = list(itertools.islice(rest, 1))
        if resumed is not None:
            self._leave_out(rest, now.taken - 1)
            chance.restore(resumed)
            now.after = None
        if not now.taken:
            yield from first
        yield from rest

    def _leave_out(self, rest: Iterator[Any], count: int) -> None:
        before = chance.capture()
        collections.deque(itertools.islice(rest, max(0, count)), maxlen=0)
        if chance.moved(before):
            self.inexact = "the sampler draws from the global random streams as it goes: give it its own generator"
            place.say("not an exact resume: " + self.inexact)

    def length(self, sampler: Any) -> int:
        """Batches of an epoch; while the rest of one is dealt anew, what there is of it."""
        now = self._pass
        if now.consumed and not now.exhausted:
            return dealing.batches_left(self._loader, now.consumed)
        return len(sampler)

    def _draw(self) -> None:
        """Goes back to where the streams were when the order was drawn, or notes where they are."""
        now = self._pass
        if now.drawn is None:
            now.drawn = {"random": chance.capture(), "generators": _states(self._generators)}
        else:
            chance.restore(now.drawn["random"])
            _set(self._generators, now.drawn["generators"])

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The loader's batches as the loop takes them."""
        now = self._pass
        self._drop(now, batches)
        for batch in batches:
            now.taken += 1
            yield batch
        now.random_at_end = chance.capture()
        now.exhausted = True

    def _drop(self, now: Pass, batches: Iterator[Any]) -> None:
        """Reads again what was taken, where there is no order of indices to leave it out of."""
        if now.after is None or not now.taken or _has_order(self._loader):
            return
        for _ in itertools.islice(batches, now.taken):
            pass
        chance.restore(now.after)
        now.after = None


class _Order:
    """The loader's index sampler, told of by the cursor. Iterating draws nothing before the first index is wanted."""

    def __init__(self, cursor: Batches, sampler: Any) -> None:
        self._cursor = cursor
        self._sampler = sampler

    def __len__(self) -> int:
        return self._cursor.length(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        # A generator: with loader processes torch asks for two iterators and takes indices of one.
        yield from self._cursor.indices(self._sampler)


def _counted(kind: Any) -> type:
    # A subclass in place of the loader's class, because the loader must stay what the script made, and torch refuses
    # another batch sampler after it was made. `_index_sampler` is what every torch since 1.2 iterates.
    class Counted(kind):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            self._torchyard.start()
            return self._torchyard.counted(super().__iter__())  # type: ignore[no-any-return]

        @property
        def _index_sampler(self) -> Any:
            sampler = super()._index_sampler
            return _Order(self._torchyard, sampler) if _has_order(self) else sampler

    Counted.__name__, Counted.__qualname__, Counted.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Counted


def _has_order(loader: Any) -> bool:
    return not isinstance(loader.dataset, sys.modules["torch.utils.data"].IterableDataset)


def _generators(loader: Any) -> list[Any]:
    """Random generators that the loader and its samplers own, each once."""
    owners = (loader, loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None))
    found = (getattr(owner, "generator", None) for owner in owners)
    return list({id(each): each for each in found if hasattr(each, "get_state")}.values())


def _states(generators: Sequence[Any]) -> list[Any]:
    return [generator.get_state() for generator in generators]


def _set(generators: Sequence[Any], states: Sequence[Any]) -> None:
    for generator, state in zip(generators, states):  # noqa: B905 (strict= came with 3.10)
        generator.set_state(state)
