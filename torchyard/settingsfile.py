"""Settings as files (YAML or JSON) and as variables, read so that every error names the field or the variable."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from torchyard.exceptions import TorchYardError
from torchyard.spec import error_messages

Model = TypeVar("Model", bound=BaseModel)
#: What the names of our variables begin with.
PREFIX = "TORCHYARD_"


def read(path: Path, model: type[Model], problem: type[TorchYardError], shape: str) -> Model:
    """Load the settings in a file; fields that are absent have their defaults.

    Raises `problem` with the mend; `shape` says what such a file is made of.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise problem(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise problem(f"{path} is not valid YAML: {error}") from error
    if not isinstance(data, dict | None):
        raise problem(f"{path}: {shape}")
    try:
        return model.model_validate(data or {})
    except ValidationError as error:
        wrong = (f"{path}: {'.'.join(map(str, e['loc']))}: {error_messages.message(e, model)}" for e in error.errors())
        raise problem("\n".join(wrong)) from error


def from_environment(kind: type[Model]) -> Model:
    """Load settings that take their fields from variables; raises ValueError naming each that cannot be read."""
    try:
        return kind()
    except ValidationError as error:
        raise ValueError("\n".join(map(_about_variable, error.errors()))) from error


def _about_variable(problem: ErrorDetails) -> str:
    variable = f"{PREFIX}{problem['loc'][0]}".upper()
    cause = problem.get("ctx", {}).get("error")
    return f"{variable}: {cause}" if cause else f"{variable}: {problem['input']!r}: {problem['msg']}"


def words(value: object) -> tuple[str, ...]:
    """Split words between commas, without repetitions."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, str(value).split(",")))))
