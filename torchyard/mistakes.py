"""What is wrong with a field, in words that name the mend: shared by the service and by those who read spec files."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def message(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    """One of pydantic's errors for a person; for an unknown field the nearest name that `model` has there."""
    if error["type"] == "extra_forbidden":
        return _suggest(str(error["loc"][-1]), _fields_at(model, error["loc"][:-1]))
    if error["type"] == "missing":
        return "required, but absent: add it"
    return error["msg"].removeprefix("Value error, ")


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
