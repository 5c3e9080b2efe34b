"""Messages for wrong fields that name the mend: shared by the service and by those who read spec files."""

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from torchyard.spec.base import NAME

_WHOLE = "{given} is not a whole number: write one, such as 2"
_NUMBER = "{given} is not a number: write one, such as 0.5"
_TEXT = "{given} is not text: put it in quotes"
_LIST = "{given} is not a list: write [{bare}]"
_NAME = "{given} is not a name: take letters, digits, '.', '_' and '-', a letter or digit first, at most 63 of them"
#: pydantic's kinds of errors in the words of somebody who has never seen Python.
_WORDS = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "{given} is too large",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "{given} must be a finite number",
    "bool_type": "{given} is neither true nor false: write one of them",
    "bool_parsing": "{given} is neither true nor false: write one of them",
    "string_type": _TEXT,
    "string_pattern_mismatch": "{given} has not the form that is needed here, {pattern}",
    "string_too_short": "{given} is too short: at least {min_length} characters",
    "string_too_long": "is too long: at most {max_length} characters",
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": "{given} is not a mapping: write `{field}: {{NAME: value}}`",
    "model_type": "{given} is not a mapping: write `{field}: {{…}}` with some of {fields}",
    "model_attributes_type": "{given} is not a mapping: write `{field}: {{…}}` with some of {fields}",
    "too_short": "holds too little: at least {min_length}",
    "too_long": "holds too much: at most {max_length}",
    "enum": "{given} is not known here: take {expected}",
    "literal_error": "{given} is not known here: take {expected}",
    "greater_than": "{given} is too small: it must be greater than {gt}",
    "greater_than_equal": "{given} is too small: the least is {ge}",
    "less_than": "{given} is too large: it must be less than {lt}",
    "less_than_equal": "{given} is too large: the most is {le}",
    "datetime_from_date_parsing": "{given} is no time: write it as 2026-11-23T09:00Z",
    "datetime_parsing": "{given} is no time: write it as 2026-11-23T09:00Z",
    "timezone_aware": "{given} has no time zone: write it as 2026-11-23T09:00Z",
}
_SHOWN = 60
_LISTED = 8


def message(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    """One of pydantic's errors for a person; for an unknown field the nearest name that `model` has there."""
    if error["type"] == "extra_forbidden":
        return _suggest(str(error["loc"][-1]), _fields_at(model, error["loc"][:-1]))
    if error["type"] == "missing":
        return "required, but absent: add it"
    if error["type"] in _WORDS:
        return _worded(error, model)
    return error["msg"].removeprefix("Value error, ")


def _worded(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    context = {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    words = _NAME if context.get("pattern") == f"^{NAME}$" else _WORDS[error["type"]]
    given = error["input"]
    bare = given if isinstance(given, str | int | float) and len(str(given)) < _SHOWN else "a, b"
    known = list(_fields_at(model, error["loc"]))
    fields = ", ".join([*known[:_LISTED], *["and others"] * (len(known) > _LISTED)])
    return words.format(
        given=_shown(given), bare=bare, field=error["loc"][-1] if error["loc"] else "", fields=fields, **context
    )


def _plain(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value


def _shown(given: Any) -> str:
    """Format a given value as YAML has it, and not all of a long one."""
    if given is None:
        return "nothing"
    try:
        text = json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError):
        text = "this"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _suggest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"unknown field; did you mean {close[0]}?" if close else "unknown field: leave it out"


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
