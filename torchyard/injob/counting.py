"""Subclasses in place of a loader's class that tell its cursor of passes, orders and batches.

Because the loader must stay what the script made, and torch refuses another batch sampler after it was made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from torchyard.injob import unattached_loaders


class _CountedSampler:
    """A loader's index sampler, told of by the cursor. Iterating draws nothing before the first index is wanted."""

    def __init__(self, cursor: Any, sampler: Any) -> None:
        self._cursor = cursor
        self._sampler = sampler

    def __len__(self) -> int:
        return int(self._cursor.length(self._sampler))

    def __iter__(self) -> Iterator[Any]:
        # A generator: with loader processes torch asks for two iterators and takes indices of one.
        found: Iterator[Any] = self._cursor.indices(self._sampler)
        return found


def count(loader: Any, base: Any, cursor: Any) -> None:
    """Have the loader tell the cursor of its passes and batches, and `base`, which may be the same, of its order."""
    _replace(base, _ordered(type(base)))
    base._torchyard = cursor
    _replace(loader, _counted(type(loader)))
    loader._torchyard = cursor


def _replace(loader: Any, kind: type) -> None:
    # Accelerate's loader has a property of that name, which says that it is a DataLoader.
    object.__dict__["__class__"].__set__(loader, kind)


def _ordered(kind: Any) -> type:
    # `_index_sampler` is what every torch since 1.2 iterates.
    class Ordered(kind):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            iterator: Iterator[Any] = super().__iter__()
            unattached_loaders.ours(iterator)
            return iterator

        @property
        def _index_sampler(self) -> Any:
            sampler = super()._index_sampler
            return _CountedSampler(self._torchyard, sampler) if has_order(self) else sampler

    return _named(Ordered, kind)


def _counted(kind: Any) -> type:
    class Counted(kind):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            self._torchyard.start()
            found: Iterator[Any] = self._torchyard.counted(super().__iter__())
            return found

    return _named(Counted, kind)


def _named(new: Any, kind: Any) -> type:
    new.__name__, new.__qualname__, new.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return new  # type: ignore[no-any-return]


def has_order(loader: Any) -> bool:
    """Return whether the loader takes indices, rather than what an iterable data set gives."""
    return not isinstance(loader.dataset, sys.modules["torch.utils.data"].IterableDataset)


def generators(loader: Any, base: Any) -> list[Any]:
    """Random generators that the loader and its samplers own, each once."""
    batches = base.batch_sampler
    inner = getattr(batches, "batch_sampler", None)  # that of a part of the ranks' batches
    owners = (loader, base, base.sampler, batches, getattr(batches, "sampler", None), inner)
    found = [getattr(owner, "generator", None) for owner in (*owners, getattr(inner, "sampler", None))]
    found.append(getattr(loader, "synchronized_generator", None))
    return list({id(each): each for each in found if hasattr(each, "get_state")}.values())
