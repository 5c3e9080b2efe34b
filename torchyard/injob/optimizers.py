"""The state of optimizers: whole, or by the names of the parameters when each rank holds some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchyard.injob.exceptions import AttachError


class Optimizers:
    """One optimizer or several; each from `torch.optim` or anything else with `state_dict` and `load_state_dict`."""

    def __init__(self, optimizers: Sequence[Any]) -> None:
        self._optimizers = optimizers

    def state(self) -> list[dict[str, Any]]:
        """The whole state. On every rank: `state_dict` may be collective."""
        return [{"class": type(each).__name__, "state": each.state_dict()} for each in self._optimizers]

    def load(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Load what `state` answered; `differences` has found none."""
        for optimizer, entry in zip(self._optimizers, saved):  # noqa: B905 (strict= came with 3.10)
            optimizer.load_state_dict(entry["state"])
            _stepped(optimizer)

    def differences(self, saved: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return why a whole state cannot be loaded, in words; nothing if it can."""
        if len(saved) != len(self._optimizers):
            return ["it has %d optimizer(s), here are %d" % (len(saved), len(self._optimizers))]
        found = []
        for optimizer, entry in zip(self._optimizers, saved):  # noqa: B905
            here, there = type(optimizer).__name__, entry["class"]
            if here != there:
                found.append("its optimizer is %s, here is %s" % (there, here))
            elif hasattr(optimizer, "param_groups"):
                counts = [len(group["params"]) for group in optimizer.param_groups]
                saved_counts = [len(group["params"]) for group in entry["state"]["param_groups"]]
                if counts != saved_counts:
                    found.append("its optimizer has %s parameters by group, here are %s" % (saved_counts, counts))
        return found

    # By the names of parameters, for a rank that has some of them.

    def classes(self) -> list[str]:
        """The kinds of optimizers."""
        return [type(optimizer).__name__ for optimizer in self._optimizers]

    def names(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that are optimized, by their first names."""
        return {name: parameter for _, group in self._groups(parameters) for name, parameter in group}

    def by_name(self, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The state of each parameter that has one."""
        return {
            name: dict(optimizer.state[parameter])
            for optimizer in self._optimizers
            for _, group in self._groups(parameters, optimizer)
            for name, parameter in group
            if parameter in optimizer.state
        }

    def groups(self, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The options of each parameter's group."""
        return {
            name: {key: value for key, value in options.items() if key != "params"}
            for options, group in self._groups(parameters)
            for name, _ in group
        }

    def load_by_name(
        self, parameters: Mapping[str, Any], state: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Load what `by_name` and `groups` answered, on whatever ranks and in whatever groups."""
        for optimizer in self._optimizers:
            names = [[name for name, _ in group] for _, group in self._groups(parameters, optimizer)]
            whole = optimizer.state_dict()
            numbers = [group["params"] for group in whole["param_groups"]]
            whole["state"] = {
                number: dict(state[name])
                for mine, theirs in zip(names, numbers)  # noqa: B905 (strict= came with 3.10)
                for name, number in zip(mine, theirs)  # noqa: B905
                if state.get(name)
            }
            for group, mine in zip(whole["param_groups"], names):  # noqa: B905
                group.update(groups.get(mine[0], {}) if mine else {})
            optimizer.load_state_dict(whole)
            _stepped(optimizer)

    def _groups(self, parameters: Mapping[str, Any], only: Any = None) -> Iterator[tuple[Any, list[tuple[str, Any]]]]:
        """Each group with its parameters and their names."""
        named = {id(parameter): name for name, parameter in reversed(list(parameters.items()))}
        for optimizer in self._optimizers if only is None else [only]:
            if not hasattr(optimizer, "param_groups"):
                raise AttachError("a sharded optimizer must have param_groups: %s has none" % type(optimizer).__name__)
            for group in optimizer.param_groups:
                unknown = [parameter for parameter in group["params"] if id(parameter) not in named]
                if unknown:
                    raise AttachError("the optimizer has %d parameters that the model lacks" % len(unknown))
                yield group, [(named[id(parameter)], parameter) for parameter in group["params"]]


def _stepped(optimizer: Any) -> None:
    # A run that resumes at the end of an epoch calls its scheduler first, and torch would warn of the wrong order.
    optimizer._opt_called = True
