"""The body of a submission: JSON or YAML, checked into a `JobSpec`, every complaint with its field or line."""

import json
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError

from service.problems import ProblemError, field_problem, field_problems, invalid
from torchyard.api import FieldProblem
from torchyard.spec import JobSpec

YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
JSON_TYPES = frozenset({"application/json", ""})
#: Deeper than any spec; libyaml's loader recurses in C and would take the process down.
MAX_DEPTH = 32


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """The mapping in a body; an ``invalid-request`` problem names line and column of what cannot be read."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in YAML_TYPES | JSON_TYPES:
        raise ProblemError(
            "unsupported-media-type", f"{kind!r} is not read here: send application/json or application/yaml."
        )
    text = _decode(raw)
    value = _yaml(text) if kind in YAML_TYPES else _json(text)
    if not isinstance(value, dict):
        raise field_problem("(body)", f"must be a mapping of fields, such as {{name: …}}, not {_named(value)}")
    _check_text(value)
    return value


def check(data: dict[str, Any]) -> JobSpec:
    """The spec; an ``invalid-request`` problem lists every wrong field."""
    try:
        return JobSpec.model_validate(data)
    except ValidationError as error:
        raise invalid(field_problems(error.errors(include_url=False), JobSpec)) from error


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise field_problem("(body)", f"is not UTF-8 at byte {error.start}") from error


def _named(value: object) -> str:
    names = {list: "a list", str: "a text", type(None): "nothing"}
    return names.get(type(value), "a single value")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise field_problem("(body)", f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except ValueError as error:
        raise field_problem("(body)", str(error)) from error
    except RecursionError as error:
        raise field_problem("(body)", "is nested too deeply") from error


def _yaml(text: str) -> Any:
    try:
        _check_events(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        raise field_problem("(body)", f"{_place(error.problem_mark)}{error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise field_problem("(body)", str(error)[:500]) from error


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


def _check_events(text: str) -> None:
    """Refuses depth, which crashes the loader, and aliases, which make a short text endless."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise field_problem("(body)", f"{_place(event.start_mark)}aliases (*name) are not read here")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise field_problem("(body)", f"{_place(event.start_mark)}nested too deeply")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path, str(key)
            yield from _texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}.{index}")


def _check_text(value: dict[str, Any]) -> None:
    """Neither databases nor programs' arguments can hold NUL or half a character."""
    try:
        wrong = [path for path, text in _texts(value, "") if "\0" in text or not _is_whole(text)]
    except RecursionError as error:
        raise field_problem("(body)", "is nested too deeply") from error
    if wrong:
        message = "must not contain NUL or lone surrogates"
        raise invalid([FieldProblem(field=path or "(body)", message=message) for path in wrong[:20]])


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
