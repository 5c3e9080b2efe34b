"""Findings of a node, or of the service about one: sentences, and what they are made of."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from torchyard.injob.reasons import TEMPLATES
from torchyard.wire.protocol import DescribedMessage, Text

FindingParams = Mapping[str, Text | int | tuple[Text, ...]]


class FindingCode(StrEnum):
    """Kinds of findings that are known, with their params."""

    #: A device's lock cannot be opened: `error`, `folder`. Another stack owns the device: `user`, `home`, `pid`.
    LOCK = "lock"
    OTHER_STACK = "other-stack"
    #: Process `pid` of `attempt`, which has ended, outlives SIGKILL on the device.
    OUTLIVES_KILL = "outlives-kill"
    #: Processes from outside of the queue hold the device: the largest (`pid`, `name`, `user`, `started`), and where
    #: jobs wait for it, how many `others` and the size that all have `held`.
    AWAITED = "awaited"
    EXCLUDED = "excluded"
    #: `attempt`, which the service does not know, or has declared dead, runs on the device.
    UNKNOWN_ATTEMPT = "unknown-attempt"
    DEAD_ATTEMPT = "dead-attempt"
    #: The driver tells of a fault: the newest `xid` with its time `at`, and the number of memory `errors`; one of
    #: them may be left out.
    BROKEN = "broken"
    #: A fault of which the node tells in its own words alone: `said`.
    FAULT = "fault"
    #: The last `jobs` failed under the device; `resume` is the command that returns it to use.
    FAILING = "failing"
    #: A process (`pid`, `name`, `user`, `started`) uses the GPU `uuid`, and has `held` so much of it if that is known:
    #: a GPU that nobody has, or that the attempts `holders` have.
    ON_FREE_GPU = "on-free-gpu"
    ON_HELD_GPU = "on-held-gpu"
    #: An attempt has `held` more of the GPU `uuid` than its `share`.
    OVER_SHARE = "over-share"
    #: Why the kernel holds jobs to no limits: cgroups are switched off, none was delegated to the worker, or none can
    #: be written.
    CGROUPS_OFF = "cgroups-off"
    CGROUPS_NOT_DELEGATED = "cgroups-not-delegated"
    CGROUPS_NOT_WRITABLE = "cgroups-not-writable"


def _plain(params: Any) -> Any:
    """Leave out what a newer node tells in a form that is not known here."""
    if not isinstance(params, dict):
        return params
    return {name: value for name, value in params.items() if isinstance(value, str | int) or _is_list(value)}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


class Finding(DescribedMessage):
    """A sentence about a device, a process or a node, with what it is made of, for words in another language."""

    code: Text = Field(json_schema_extra={"x-extensible-enum": list(FindingCode)})
    """Kind of the finding; a newer node may send others."""
    message: Text
    """The sentence."""
    params: Annotated[FindingParams, BeforeValidator(_plain)] = {}
    """What the message is made of; the keys depend on the code. With `return`, the command that returns the device to
    use, the device is in quarantine for what is found."""

    @staticmethod
    def with_message(message: str | None, findings: Iterable["Finding"]) -> "Finding | None":
        """Return the finding that a text is the message of; None if there is none."""
        return next((each for each in findings if each.message == message), None)


def _checked(given: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(given)
    except ValidationError:
        return []


class Clause(DescribedMessage):
    """A sentence of a note on checkpoints, with what it is made of, for words in another language."""

    message: Text
    """The sentence."""
    code: Text | None = Field(default=None, json_schema_extra={"x-extensible-enum": list(TEMPLATES)})
    """Kind of the sentence; null: words of a program, such as those of an exception."""
    params: Annotated[FindingParams, BeforeValidator(_plain)] = {}
    """What the message is made of; the keys depend on the code."""


#: Sentences as a job's own part left them: what is of another form is nothing.
OwnClauses = Annotated[list[Clause], WrapValidator(_checked)]
