"""Places of a sweep's parameters: a path into the spec, or a name in braces in the command's arguments."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from service.errors import invalid
from torchyard.api import FieldProblem
from torchyard.spec import JobSpec
from torchyard.spec.sweeps import Value, written
from torchyard.translatable import TranslatableText, joined

Path = tuple[str, ...]
#: ``{lr}`` is a parameter's place, ``{{lr}}`` stands for ``{lr}`` itself; all other braces mean nothing.
_BRACES = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
#: What all trials have in common: they are one group, of one project, from one submission.
SHARED = frozenset({"name", "project", "priority", "tags", "after", "sweep", "command", "code", "live", "link"})
#: Setting one takes the other away.
_EXCLUDING = {"batch_size": "global_batch_size", "global_batch_size": "batch_size"}


class ParameterBindings:
    """Places of the parameters in one spec; raises an ``invalid-request`` problem that names every wrong one."""

    def __init__(self, spec: JobSpec) -> None:
        self._data = spec.model_dump(mode="json", exclude={"sweep"})
        names = list(spec.sweep.parameters) if spec.sweep else []
        self._in_braces = frozenset(_named(spec.command or ()))
        found = {name: self._find(name, names) for name in names}
        wrong = [_problem(name, place) for name, place in found.items() if isinstance(place, str)]
        wrong += [_stranger(name) for name in sorted(self._in_braces - set(names))]
        if wrong:
            raise invalid(wrong)
        self._commanded = bool(self._in_braces)
        # What lies deeper is set later, so that an option is one of the noun that another parameter has chosen.
        paths = {name: place for name, place in found.items() if isinstance(place, tuple)}
        self.paths: Mapping[str, Path] = dict(sorted(paths.items(), key=lambda item: len(item[1])))

    def fill(self, parameters: Mapping[str, Value]) -> dict[str, Any]:
        """Return the data of a trial's spec."""
        data = self._data
        for name, path in self.paths.items():
            value = parameters[name]
            data = _set(data, path, written(value) if path[0] == "env" else value)
            if path[-1] in _EXCLUDING and (*path[:-1], _EXCLUDING[path[-1]]) not in self.paths.values():
                data = _drop(data, (*path[:-1], _EXCLUDING[path[-1]]))
        if self._commanded:
            data = {**data, "command": [_filled(word, parameters) for word in data["command"]]}
        return data

    def _find(self, name: str, names: list[str]) -> Path | str | None:
        """Return a path, None for a name in braces, or in words why it is neither."""
        if name in self._in_braces:
            return None
        path = tuple(name.split("."))
        if len(path) == 1 and name not in self._data:
            return self._find_in_recipe(name)
        if path[0] in SHARED:
            return TranslatableText(
                "sweep-shared", "{field} belongs to all trials together: vary something else", field=path[0]
            )
        return path if self._exists(path, names) else self._missing(path)

    def _find_in_recipe(self, name: str) -> Path | str:
        recipe = self._data["recipe"]
        if recipe is None:
            return _not_in_braces(name, self._in_braces)
        paths = list(_paths(recipe, ("recipe",)))
        found = [path for path in paths if path[-1] == name]
        if len(found) == 1:
            return found[0]
        if found:
            return TranslatableText(
                "found-often",
                "is found {count} times in the recipe: write which, {paths}",
                count=len(found),
                paths=_either(map(".".join, found)),
            )
        if close := _near(name, {path[-1] for path in paths}):
            return TranslatableText("similar-key", "is no key of this recipe: did you mean {names}?", names=close)
        return TranslatableText("no-key", "is no key of this recipe: write it as in the spec, such as recipe.optim.lr")

    def _exists(self, path: Path, names: list[str]) -> bool:
        inside: Any = self._data
        for depth, part in enumerate(path):
            if ".".join(path[:depth]) in names or path[:depth] == ("env",):
                return True  # what is there is another parameter's choice: the trials themselves are checked
            if not isinstance(inside, dict) or part not in inside:
                return False
            inside = inside[part]
        return True

    def _missing(self, path: Path) -> str:
        known = {".".join(found) for found in _paths(self._data, ()) if found[0] not in SHARED}
        if close := _near(".".join(path), known):
            return TranslatableText("similar-path", "is no path into this spec: did you mean {names}?", names=close)
        return TranslatableText(
            "no-path", "is no path into this spec: write it as in the spec, such as recipe.optim.lr"
        )


def _named(command: Iterable[str]) -> Iterator[str]:
    return (match[2] for word in command for match in _BRACES.finditer(word) if match[2])


def _filled(word: str, parameters: Mapping[str, Value]) -> str:
    return _BRACES.sub(lambda match: f"{{{match[1]}}}" if match[1] else written(parameters[match[2]]), word)


def _paths(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from _paths(inner, (*path, key))


def _set(data: Any, path: Path, value: Value) -> Any:
    """Return the data with a value at a path, copied on the way and shared elsewhere. A bare name is a noun's."""
    inner = dict(data) if isinstance(data, dict) else {"name": data} if isinstance(data, str) else {}
    inner[path[0]] = _set(inner.get(path[0]), path[1:], value) if len(path) > 1 else value
    return inner


def _drop(data: Any, path: Path) -> Any:
    if not isinstance(data, dict) or path[0] not in data:
        return data
    if len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    return {**data, path[0]: _drop(data[path[0]], path[1:])}


def _problem(name: str, message: str) -> FieldProblem:
    return FieldProblem(field=f"sweep.parameters.{name}", message=message)


def _stranger(name: str) -> FieldProblem:
    message = TranslatableText(
        "no-parameter",
        "{{{name}}} is no parameter: add it to sweep.parameters, or write {{{{{name}}}}} for the braces themselves",
        name=name,
    )
    return FieldProblem(field="command", message=message)


def _not_in_braces(name: str, in_braces: frozenset[str]) -> str:
    nowhere = TranslatableText(
        "not-in-braces",
        "stands nowhere in the command: write {{{name}}} in an argument, or name a path into the spec",
        name=name,
    )
    stands = tuple(f"{{{each}}}" for each in sorted(in_braces))
    return joined([nowhere, *([TranslatableText("in-braces", "there is {names}", names=stands)] if stands else [])])


def _near(name: str, known: Iterable[str]) -> str:
    """Return the names that may be meant; empty if none is like it."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return _either(close) if close else ""


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return TranslatableText("either", "{others} or {last}", others=tuple(first), last=last) if first else last
