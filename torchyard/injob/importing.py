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
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, call)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """A loader of others, for one import: theirs may be shared by all modules of a zip file."""

    def __init__(self, loader: Any, call: Then) -> None:
        self._loader = loader
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _do(self._call, module)


def _do(call: Then, module: Any) -> None:
    try:
        call(module)
    except Exception as error:  # noqa: BLE001 (the framework must not fail for want of us)
        place.say("no checkpoints and metrics of %s: %s: %s" % (module.__name__, type(error).__name__, error))


def _is_loading(name: str) -> bool:
    """Return whether a module is being imported, as one is whose own import has led to ours."""
    return bool(getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False))


def _once_loaded(name: str, call: Then) -> None:
    """Make the call when the import of a module has come to its end: no finder is asked any more.

    Its package may be replaced meanwhile, which transformers does with itself; the spec is not.
    """
    spec: Any = sys.modules[name].__spec__
    kind: Any = type(spec)

    def __setattr__(self: Any, attribute: str, value: Any) -> None:  # noqa: N807 (it becomes a method)
        kind.__setattr__(self, attribute, value)
        if attribute == "_initializing" and not value:
            self.__class__ = kind
            if name in sys.modules:  # it has not failed
                _do(call, sys.modules[name])

    spec.__class__ = type(kind.__name__, (kind,), {"__setattr__": __setattr__, "__module__": kind.__module__})


def after(calls: Mapping[str, Then]) -> None:
    """Have each call be made with its module: now if that is imported, else as soon as it is."""
    for name, call in calls.items():
        if _is_loading(name):
            _once_loaded(name, call)
        elif sys.modules.get(name) is not None:  # None keeps it from being imported
            _do(call, sys.modules[name])
    # One that is being imported may fail, and be tried again.
    later = {name: call for name, call in calls.items() if name not in sys.modules or _is_loading(name)}
    # A forked process has the finder of the one that it was forked from: two would ask each other without end.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != __name__]
    if later:
        sys.meta_path.insert(0, _Finder(later))
