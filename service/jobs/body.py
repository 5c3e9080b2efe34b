"""Body of a submission: JSON or YAML, checked into a `JobSpec`, every complaint with its field or line."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import yaml
from pydantic import ValidationError

from service.errors import ProblemError, field_problem, field_problems, invalid
from torchyard.api import FieldProblem
from torchyard.numbers import INT64
from torchyard.spec import JobSpec
from torchyard.translatable import TranslatableText, of_error

YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
JSON_TYPES = frozenset({"application/json", ""})
#: Deeper than any spec; libyaml's loader recurses in C and would take the process down.
MAX_DEPTH = 32
#: A plain word of YAML with colons and nothing but digits is a number of base 60, whose reading takes the square of
#: its length.
MAX_NUMBER = 100
_NUMBER = re.compile(r"[0-9_:.+-]+")
#: Wrong fields that are named; each costs a search for the name that may be meant.
MAX_COMPLAINTS = 50


#: A body that recurses deeper than its reader.
NESTED = TranslatableText("nested", "is nested too deeply")
_ALIASES = TranslatableText("yaml-aliases", "aliases (*name) are not read here")
_LONG_NUMBER = TranslatableText("yaml-number", "no number is that long: put a text in quotes")


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """Return the mapping in a body; an ``invalid-request`` problem names line and column of what cannot be read."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in YAML_TYPES | JSON_TYPES:
        raise ProblemError(
            "unsupported-media-type",
            TranslatableText(
                "media-type", "{kind!r} is not read here: send application/json or application/yaml.", kind=kind
            ),
        )
    text = _decode(raw)
    value = _yaml(text) if kind in YAML_TYPES else _json(text)
    if not isinstance(value, dict):
        raise field_problem("(body)", no_mapping(value))
    check_values(value)
    return value


def check(data: dict[str, Any]) -> JobSpec:
    """Return the spec; an ``invalid-request`` problem lists every wrong field."""
    try:
        return JobSpec.model_validate(data)
    except ValidationError as error:
        raise invalid(field_problems(error.errors(include_url=False)[:MAX_COMPLAINTS], JobSpec)) from error


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise field_problem(
            "(body)", TranslatableText("no-utf8", "is not UTF-8 at byte {at}", at=error.start)
        ) from error


def no_mapping(value: object) -> TranslatableText:
    """Say what a body is that is no mapping."""
    match value:
        case list():
            return TranslatableText("body-list", "must be a mapping of fields, such as {{name: …}}, not a list")
        case str():
            return TranslatableText("body-text", "must be a mapping of fields, such as {{name: …}}, not a text")
        case None:
            return TranslatableText("body-nothing", "must be a mapping of fields, such as {{name: …}}, not nothing")
    return TranslatableText("body-value", "must be a mapping of fields, such as {{name: …}}, not a single value")


def _refuse_constant(name: str) -> Any:
    raise ValueError(TranslatableText("json-constant", "{name} is not JSON", name=name))


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise field_problem("(body)", _at(error.lineno, error.colno, error.msg)) from error
    except ValueError as error:
        raise field_problem("(body)", of_error(error)) from error
    except RecursionError as error:
        raise field_problem("(body)", NESTED) from error


def _yaml(text: str) -> Any:
    try:
        _check_events(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        raise field_problem("(body)", _placed(error.problem_mark, str(error.problem or error.context))) from error
    except (yaml.YAMLError, ValueError) as error:
        raise field_problem("(body)", str(error)[:500]) from error


def _placed(mark: Any, what: str) -> str:
    return _at(mark.line + 1, mark.column + 1, what) if mark else what


def _at(line: int, column: int, what: str) -> TranslatableText:
    return TranslatableText("in-line", "line {line}, column {column}: {what}", line=line, column=column, what=what)


def _check_events(text: str) -> None:
    """Refuse depth, which crashes the loader, aliases, which make a short text endless, and forms of its own."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise field_problem("(body)", _placed(event.start_mark, _ALIASES))
        if (tag := getattr(event, "tag", None)) is not None:
            raise field_problem(
                "(body)",
                _placed(
                    event.start_mark, TranslatableText("yaml-tags", "tags ({tag}) are not read here", tag=tag[:80])
                ),
            )
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _is_long_number(event.value):
            raise field_problem("(body)", _placed(event.start_mark, _LONG_NUMBER))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise field_problem("(body)", _placed(event.start_mark, TranslatableText("too-deep", "nested too deeply")))


def _is_long_number(text: str) -> bool:
    return len(text) > MAX_NUMBER and _NUMBER.fullmatch(text) is not None


def check_values(value: Mapping[str, Any], path: str = "") -> None:
    """Refuse what databases, arguments or JSON cannot hold, wherever it stands; complaints name the field."""
    wrong = islice(_faults(value, path, MAX_DEPTH), MAX_COMPLAINTS)
    if complaints := [FieldProblem(field=field or "(body)", message=message) for field, message in wrong]:
        raise invalid(complaints)


def _faults(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if fault := _fault(value):
        yield path, fault
    elif isinstance(value, Mapping | list | tuple | set) and depth == 0:
        yield path, NESTED
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if fault := _fault(name):
                yield path, TranslatableText("wrong-key", "has a name that {fault}", fault=fault)
            else:
                yield from _faults(item, f"{path}.{name}" if path else str(name), depth - 1)
    elif isinstance(value, list | tuple | set):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}.{index}", depth - 1)


def _fault(value: Any) -> str | None:
    """Return the fault of a single value; None for those that hold others."""
    match value:
        case str() if "\0" in value or not _is_whole(value):
            return TranslatableText("nul", "must not contain NUL or lone surrogates")
        case bytes():
            return TranslatableText("binary", "must be a text, not binary")
        case int() if value not in INT64:
            return TranslatableText("64-bits", "must fit into 64 bits")
        case float() if not math.isfinite(value):
            return TranslatableText("not-finite", "must be a finite number")
    return None


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
