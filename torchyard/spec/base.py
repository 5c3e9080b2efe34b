"""Base of the spec's models, and the names that they share."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from torchyard.control_characters import check_name
from torchyard.described import Described

MAX_NAME = 63
NAME = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}"
Ref = Annotated[str, Field(min_length=1, max_length=64)]
Tag = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(check_name)]


def word(value: Any) -> Any:
    """A number or truth value as the text that a command line or an environment has."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


class Model(Described):
    """Base of every model in the spec: immutable, and strangers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
