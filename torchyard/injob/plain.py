"""Plain data: what a checkpoint holds, so that reading one runs no code of whoever wrote it."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from typing import Any

from torchyard.injob.exceptions import AttachError

_ATOMS: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))
_MAPPINGS = (dict, collections.OrderedDict, collections.Counter)


def walk(value: Any, tensor: Callable[[Any], Any], path: str) -> Any:
    """A copy of the containers, with `tensor` applied to each tensor and NumPy's scalars as Python's.

    Raises AttachError, which names the place, for anything that is no plain data.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, dict):
        mapping = type(value) if type(value) in _MAPPINGS else dict
        return mapping({key: walk(item, tensor, "%s[%r]" % (path, key)) for key, item in value.items()})
    for kind in (list, tuple, set):
        if isinstance(value, kind):
            return kind(walk(item, tensor, "%s[%d]" % (path, place)) for place, item in enumerate(value))
    if isinstance(value, sys.modules["torch"].Tensor):
        return tensor(value)
    return _atom(value, path)


def _atom(value: Any, path: str) -> Any:
    torch = sys.modules["torch"]
    if isinstance(value, (torch.dtype, torch.device)):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    for kind in _ATOMS:
        if isinstance(value, kind):  # an enumeration's member, say
            return kind(value)
    raise AttachError(
        "%s is a %s: let state_dict() return plain data (numbers, text, tensors, lists, dictionaries)"
        % (path, type(value).__name__)
    )
