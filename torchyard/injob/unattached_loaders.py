"""Iterators of loaders that are not attached: one that is open at a checkpoint begins anew when the run is resumed."""

from __future__ import annotations

import functools
import importlib
import weakref
from typing import Any

_open: weakref.WeakSet[Any] = weakref.WeakSet()
_ours: weakref.WeakSet[Any] = weakref.WeakSet()
_watching = False


def watch() -> None:
    """Note from now on which iterators of any `DataLoader` have been begun and not come to their end."""
    global _watching  # noqa: PLW0603 (one per process)
    base = getattr(importlib.import_module("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
    if base is None or _watching:
        return
    _watching = True
    original = base.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        try:
            batch = original(self)
        except StopIteration:
            _open.discard(self)
            raise
        if self not in _ours:
            _open.add(self)
        return batch

    base.__next__ = following


def ours(iterator: Any) -> None:
    """Leave out an iterator of the attached loader."""
    try:
        _ours.add(iterator)
    except TypeError:  # one that cannot be referred to weakly is not watched either
        return


def begin() -> None:
    """An epoch begins: what was begun before it and is not taken from again does not count."""
    _open.clear()


def any_open() -> bool:
    """Return whether batches were taken from a loader that is not attached, and more may be."""
    return len(_open) > 0
