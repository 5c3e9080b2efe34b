"""The parameters and buffers of a model by the names that it has alone, however it is wrapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchyard.injob.exceptions import AttachError

#: What wraps a module, and the attribute that holds it. By name: not every torch has them all.
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "OptimizedModule": "_orig_mod",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
}


_DOUBLE = "two of the models both have %r: pass stages of one model, and another model by a keyword of its own"


class Models:
    """One model, or the stages of one; each a module or anything else with `state_dict` and `load_state_dict`."""

    def __init__(self, models: Sequence[Any]) -> None:
        self._models = models
        self._prefixes = [list(_wrapped(model)) for model in models]

    def beside(self, others: Sequence[Any]) -> Models:
        """These models and others, as one."""
        return Models([*self._models, *others]) if others else self

    def check(self) -> None:
        """Raise AttachError if two of the models have a parameter of one name. Not collective."""
        seen: set[str] = set()
        for model, prefixes in zip(self._models, self._prefixes):  # noqa: B905 (strict= came with 3.10)
            names = [name for name, _ in (model.named_parameters() if hasattr(model, "named_parameters") else ())]
            for name in (_alone(each, prefixes) for each in names):
                if name in seen:
                    raise AttachError(_DOUBLE % name)
                seen.add(name)

    def state(self) -> dict[str, Any]:
        """Values by name. On every rank: `state_dict` may be collective."""
        merged: dict[str, Any] = {}
        for model, prefixes in zip(self._models, self._prefixes):  # noqa: B905 (strict= came with 3.10)
            for name, value in model.state_dict().items():
                alone = _alone(name, prefixes)
                if alone in merged:
                    raise AttachError(_DOUBLE % alone)
                merged[alone] = value
        return merged

    def parameters(self) -> dict[str, Any]:
        """Parameters by name; one that is used twice has several."""
        return {
            _alone(name, prefixes): parameter
            for model, prefixes in zip(self._models, self._prefixes)  # noqa: B905
            if hasattr(model, "named_parameters")
            for name, parameter in model.named_parameters(remove_duplicate=False)
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Load values by name; `differences` has found none."""
        for model, prefixes in zip(self._models, self._prefixes):  # noqa: B905
            if not hasattr(model, "named_modules"):
                model.load_state_dict(dict(saved))
                continue
            model.load_state_dict({name: saved[_alone(name, prefixes)] for name in model.state_dict()})

    def differences(self, saved: Mapping[str, Any]) -> list[str]:
        """Return why these values cannot be loaded, in words; nothing if they can."""
        if not all(hasattr(model, "named_modules") for model in self._models):
            return []
        return differences(shapes(self.state()), shapes(saved))


def shapes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Shape of each tensor by name; None for what is none."""
    return {name: tuple(value.shape) if hasattr(value, "shape") else None for name, value in state.items()}


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Return how the shapes here and in a checkpoint differ, in words; nothing if they do not."""
    missing = [name for name in here if name not in there]
    surplus = [name for name in there if name not in here]
    found = (["it lacks " + some(missing)] if missing else []) + (
        ["the model lacks " + some(surplus)] if surplus else []
    )
    if found:
        return found
    other = ["%s %s, here %s" % (name, there[name], here[name]) for name in here if here[name] != there[name]]
    return ["there is " + some(other)] if other else []


def some(names: Sequence[str], shown: int = 3) -> str:
    """The first names, and how many more."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (" and %d more" % more if more > 0 else "")


def _wrapped(model: Any) -> Iterator[tuple[str, str]]:
    """Prefixes that wrappers put before names: (in the live name, the same without the wrapper), longest first."""
    if not hasattr(model, "named_modules"):
        return
    found = []
    for name, module in model.named_modules(remove_duplicate=False):
        for kind in type(module).__mro__:
            attribute = _WRAPPERS.get(kind.__name__) if kind.__module__.startswith("torch.") else None
            if attribute is not None:
                before = name + "." if name else ""
                found.append((before + attribute + ".", before))
                break
    yield from sorted(found, key=lambda pair: -len(pair[0]))


def _alone(name: str, prefixes: Sequence[tuple[str, str]]) -> str:
    for wrapped, alone in prefixes:
        if name.startswith(wrapped):
            name = alone + name[len(wrapped) :]
    return name
