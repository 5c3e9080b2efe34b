"""Something to be done once a module of the script's frameworks has been imported, and only then."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from torchyard.injob import place

#: What is done with a module.
Then = Callable[[Any], None]


class _Finder(importlib.abc.MetaPathFinder):
    """Asks the other finders, and adds to what they answer for a few names."""

    def __init__(self, calls: Mapping[str, Then]) -> None:
        self._calls = dict(calls)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        call = self._calls.get(fullname)
        if call is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                _add(spec, call)
                return spec
        return None


def _add(spec: ModuleSpec, call: Then) -> None:
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        _do(call, module)

    # Of this loader object alone: each module that is found has one of its own.
    loader.exec_module = exec_module  # type: ignore[union-attr,method-assign]


def _do(call: Then, module: ModuleType) -> None:
    try:
        call(module)
    except Exception as error:  # noqa: BLE001 (the framework must not fail for want of us)
        place.say("no checkpoints and metrics of %s: %s: %s" % (module.__name__, type(error).__name__, error))


def after(calls: Mapping[str, Then]) -> None:
    """Have each call be made with its module: now if that is imported, else as soon as it is."""
    for name, call in calls.items():
        module = sys.modules.get(name)
        if module is not None:
            _do(call, module)
    later = {name: call for name, call in calls.items() if name not in sys.modules}
    # A forked process has the finder of the one that it was forked from: two would ask each other without end.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != __name__]
    if later:
        sys.meta_path.insert(0, _Finder(later))
