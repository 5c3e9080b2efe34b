"""Settings as files: YAML or JSON, read so that every error names the field."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from torchyard.exceptions import TorchYardError
from torchyard.spec import error_messages

Model = TypeVar("Model", bound=BaseModel)


def read(path: Path, model: type[Model], problem: type[TorchYardError], shape: str) -> Model:
    """The settings in a file; fields that are absent have their defaults. Raises `problem` with the mend; `shape` says
    what such a file is made of.
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
