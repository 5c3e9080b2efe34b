"""Problem details."""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from torchyard.api.base import Resource
from torchyard.translatable import Param, TranslatableText, parts


class Problem(Resource):
    """RFC 9457 problem details; `type` is one of the frozen URIs in `torchyard.problems`."""

    type: str
    """URI of the kind of problem; programs decide by this."""
    title: str
    """The kind of problem in words."""
    status: int
    """HTTP status."""
    detail: str
    """What is wrong here, and the mend."""
    code: str | None = None
    """The sentence that `detail` is, for words in another language; null where it has no name. More may come."""
    params: "Mapping[str, Param | Sentence]" = {}
    """What `detail` is made of; the keys depend on the code."""
    errors: list["FieldProblem"] = []
    """The wrong fields, each with its own message."""


class Sentence(Resource):
    """A message, and what it is made of, for words in another language."""

    message: str
    """What is wrong, and the mend."""
    code: str | None = None
    """The sentence that `message` is; null where it has no name. More may come."""
    params: "Mapping[str, Param | Sentence]" = {}
    """What `message` is made of; the keys depend on the code."""

    @model_validator(mode="before")
    @classmethod
    def _with_parts(cls, given: Any) -> Any:
        """Keep what a message knows of itself, which is lost with its class."""
        if isinstance(given, dict) and isinstance(given.get("message"), TranslatableText):
            return {**given, **parts(given["message"])}
        return given


class FieldProblem(Sentence):
    """One wrong field: where, what, and the mend."""

    field: str
    """Dotted path of the field."""
