"""Start of an attempt on a node."""

from typing import Any

from pydantic import Field, field_serializer

from torchyard.ids import AttemptId, JobId
from torchyard.spec import JobSpec
from torchyard.wire.devices import Device
from torchyard.wire.files import Carry, FileRef, Restore
from torchyard.wire.protocol import Message
from torchyard.wire.start import NodeStart


class Launch(Message):
    """``GET /agent/attempts/{id}``, and the answer to a `Claim`: all a node needs to start an attempt."""

    attempt: AttemptId
    job: JobId
    number: int
    spec: JobSpec
    user: str
    unix_user: str | None
    node_rank: int
    devices: list[Device]
    code: list[FileRef] | None
    restore: Restore | None
    carry: Carry | None = None
    #: The only run that the job has made so far with a tracker, by tracker: its next attempt goes on with it.
    tracker_runs: dict[str, str] = {}

    @field_serializer("spec")
    def _without_defaults(self, spec: JobSpec) -> dict[str, Any]:
        # A worker of the version before refuses fields that it does not know: it gets those alone that the job sets.
        return _set_fields(spec.model_dump(mode="json"), JobSpec.model_construct().model_dump(mode="json"))


def _set_fields(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that differ from their defaults, within nested models too."""
    return {
        name: _set_fields(value, default) if isinstance(value, dict) and isinstance(default, dict) else value
        for name, value in values.items()
        if value != (default := defaults.get(name))
    }


class Claim(Message):
    """``POST /agent/attempts/{id}/claim``: answered by the `Launch`, or by 409 if another nonce has it or it is void.

    A service of the version before answers 204, and has the launch asked for.
    """

    nonce: str


class Secrets(Message):
    """Answer to ``POST /agent/attempts/{id}/secrets`` with a `Claim`: what the job's secrets are worth now, by name.

    409 if one was removed, or cannot be decrypted. Nobody keeps them: they go from memory to memory.
    """

    values: dict[str, str] = Field(repr=False)


class Prepared(Message):
    """``POST /agent/attempts/{id}/prepared``: this node's part of an attempt on several nodes has its code and
    environment; answered by `Go`, or by 409 once the attempt is void. Asked again until the answer is go.
    """

    #: Address by which the other nodes reach this one.
    address: str
    #: Port that the ranks meet at; the first node's counts.
    port: int


class Go(Message):
    """Answer whether all nodes are prepared, and if so, where the ranks meet."""

    go: bool
    address: str = ""
    port: int = 0


class Started(Message):
    """``POST /agent/attempts/{id}/running``: the job's first instruction ran; 204."""

    started_us: int
    #: The way there, as far as it is known by then.
    start: NodeStart | None = None
