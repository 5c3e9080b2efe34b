"""The packages that are installed for the interpreter of a job."""

from typing import Annotated

from pydantic import Field

from torchyard.wire.protocol import DescribedMessage, Message, Text

#: Packages of an environment, and bytes of its JSON.
MAX_PACKAGES = 3000
MAX_ENVIRONMENT = 2**18


class Environment(DescribedMessage):
    """Python and packages that a job runs with, as its first node found them soon after the start."""

    interpreter: Text
    """Path of the interpreter."""
    python: Text | None = None
    """Version of Python, as far as its folder tells; null: it does not."""
    packages: Annotated[dict[Text, Text], Field(max_length=MAX_PACKAGES)] = {}
    """Version of each package, by its name; empty where its folder does not tell."""
    left_out: int = 0
    """Packages left out, for there are too many."""
    error: Text | None = None
    """What could not be read, and why."""


class EnvironmentReport(Message):
    """``POST /agent/attempts/{id}/environment``: first the hash alone, again with what it is of if that is missing.

    Answered by `EnvironmentAnswer`. The first environment that an attempt has is the one that it keeps.
    """

    #: SHA-256 of the content's UTF-8.
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    #: `Environment` as JSON.
    content: str | None = None


class EnvironmentAnswer(Message):
    """The answer whether the service lacks the content."""

    missing: bool
