"""Secrets as the REST API shows and takes them: their values go in and never come out."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, SecretStr, model_validator

from torchyard.api.base import Resource
from torchyard.spec.secrets import MAX_VALUE
from torchyard.translatable import TranslatableText


class Secret(Resource):
    """A secret without its value."""

    name: str
    """Its name, that of the variable in the job."""
    project: str | None
    """The project whose secret it is; null: one's own."""
    set_by: str
    """Who has set its value last."""
    created_at: datetime
    """When it was set first."""
    changed_at: datetime
    """When its value was set last."""
    used_at: datetime | None
    """When a job was given it last; null: none was."""
    used_by: list[int]
    """Numbers of the jobs that were given it, the newest first, at most 20."""


def _usable(value: SecretStr) -> SecretStr:
    """Refuse what no variable can hold, in words that do not repeat it."""
    text = value.get_secret_value()
    if not text or "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            TranslatableText("secret-text", "a secret is text that is not empty, without NUL and lone surrogates")
        )
    if len(text.encode()) > MAX_VALUE:
        raise ValueError(
            TranslatableText(
                "secret-size",
                "a secret has at most {most} KiB: put more into a file, and its path here",
                most=MAX_VALUE // 1024,
            )
        )
    return value


class SecretValue(Resource):
    """``PUT /secrets/{name}`` and ``PUT /projects/{project}/secrets/{name}``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    value: Annotated[SecretStr, AfterValidator(_usable)]
    """The value, which no answer ever shows."""

    @model_validator(mode="before")
    @classmethod
    def _text(cls, given: Any) -> Any:
        """Refuse any other form here: messages about types repeat what was given."""
        if not isinstance(given, dict) or not isinstance(given.get("value"), str):
            raise ValueError(TranslatableText("secret-form", 'a secret is sent as text: {{"value": "…"}}'))
        return given
