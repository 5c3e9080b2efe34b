"""Messages for wrong fields that name the mend: shared by the service and by those who read spec files."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from torchyard.spec.base import NAME
from torchyard.translatable import TranslatableText, of_error, placeholders

_WHOLE = ("whole-number", "{given} is not a whole number: write one, such as 2")
_NUMBER = ("number", "{given} is not a number: write one, such as 0.5")
_FLAG = ("flag", "{given} is neither true nor false: write one of them")
_TEXT = ("text", "{given} is not text: put it in quotes")
_LIST = ("list", "{given} is not a list: write [{bare}]")
_MAPPING = ("mapping", "{given} is not a mapping: write `{field}: {{NAME: value}}`")
_MODEL = ("fields", "{given} is not a mapping: write `{field}: {{…}}` with some of {fields}")
_CHOICE = ("choice", "{given} is not known here: take {expected}")
_TIME = ("time", "{given} is no time: write it as 2026-11-23T09:00Z")
_NAME = (
    "name",
    "{given} is not a name: take letters, digits, '.', '_' and '-', a letter or digit first, at most 63 of them",
)
#: pydantic's kinds of errors in the words of somebody who has never seen Python, each with its code.
_KINDS = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": ("too-large", "{given} is too large"),
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": ("finite", "{given} must be a finite number"),
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "string_type": _TEXT,
    "string_pattern_mismatch": ("pattern", "{given} has not the form that is needed here, {pattern}"),
    "string_too_short": ("too-short", "{given} is too short: at least {min_length} characters"),
    "string_too_long": ("too-long", "is too long: at most {max_length} characters"),
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MODEL,
    "model_attributes_type": _MODEL,
    "too_short": ("too-few", "holds too little: at least {min_length}"),
    "too_long": ("too-many", "holds too much: at most {max_length}"),
    "enum": _CHOICE,
    "literal_error": _CHOICE,
    "greater_than": ("greater-than", "{given} is too small: it must be greater than {gt}"),
    "greater_than_equal": ("at-least", "{given} is too small: the least is {ge}"),
    "less_than": ("less-than", "{given} is too large: it must be less than {lt}"),
    "less_than_equal": ("at-most", "{given} is too large: the most is {le}"),
    "datetime_from_date_parsing": _TIME,
    "datetime_parsing": _TIME,
    "timezone_aware": ("time-zone", "{given} has no time zone: write it as 2026-11-23T09:00Z"),
    # Of our own types, by `Discriminator`.
    "values": ("values", "give a list of values, or range, uniform, loguniform or integer with two numbers"),
}
#: All of them, by their codes.
TEMPLATES: Mapping[str, str] = dict([*_KINDS.values(), _NAME])
_SHOWN = 60
_LISTED = 8


def message(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    """One of pydantic's errors for a person; for an unknown field the nearest name that `model` has there."""
    if error["type"] == "extra_forbidden":
        return unknown_field(str(error["loc"][-1]), _fields_at(model, error["loc"][:-1]))
    if error["type"] == "missing":
        return TranslatableText("missing", "required, but absent: add it")
    if error["type"] in _KINDS:
        return _translatable(error, model)
    if error["type"] == "value_error":
        return of_error(error["ctx"]["error"])
    return error["msg"]


def _translatable(error: ErrorDetails, model: type[BaseModel] | None) -> TranslatableText:
    context = {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    code, template = _NAME if context.get("pattern") == f"^{NAME}$" else _KINDS[error["type"]]
    given = error["input"]
    bare = str(given) if isinstance(given, str | int | float) and len(str(given)) < _SHOWN else "a, b"
    known = list(_fields_at(model, error["loc"]))
    if code == _MODEL[0] and not known:
        code, template = _MAPPING
    fields = ", ".join([*known[:_LISTED], *["and others"] * (len(known) > _LISTED)])
    field = str(error["loc"][-1]) if error["loc"] else ""
    params = {"given": _shown(given), "bare": bare, "field": field, "fields": fields, **context}
    return TranslatableText(code, template, **{name: _encodable(params[name]) for name in placeholders(template)})


def _encodable(param: str | int) -> str | int:
    """Write out lone surrogates, which no answer can hold."""
    return param.encode(errors="backslashreplace").decode() if isinstance(param, str) else param


def _plain(value: Any) -> str | int:
    if isinstance(value, int):
        return value
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(given: Any) -> str:
    """Format a given value as YAML has it, and not all of a long one."""
    if given is None:
        return "nothing"
    try:
        text = json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError):
        text = "this"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def unknown_field(name: str, known: Iterable[str]) -> TranslatableText:
    """Say that there is no such field, with the nearest that there is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return TranslatableText("similar-field", "unknown field; did you mean {near}?", near=close[0])
    return TranslatableText("unknown-field", "unknown field: leave it out")


def _fields_at(model: type[BaseModel] | None, path: Sequence[int | str]) -> Iterable[str]:
    """Names of the fields that a model has at a path of an error."""
    for part in path:
        field = model.model_fields.get(str(part)) if model else None
        # What is no field is the key of a mapping or the place in a list, whose values are of the model that was found.
        model = _model_in(field.annotation) if field else model
    return model.model_fields if model else ()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    return next((model for argument in arguments if (model := _model_in(argument))), None)
