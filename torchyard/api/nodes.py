"""Nodes and their devices as the REST API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from torchyard.api.base import Resource
from torchyard.api.notices import NoticeText
from torchyard.quantities import Duration
from torchyard.spec.base import NAME
from torchyard.wire import DeviceKind, Finding, Topology


class Node(Resource):
    name: str
    """Its name."""
    state: Literal["online", "draining", "unreachable"]
    """Whether it takes jobs."""
    hostname: str
    """Host name of the machine."""
    version: str
    """Version of its worker."""
    last_seen_at: datetime | None
    """When it was last heard of; null: never."""
    cpus: int
    """CPU cores."""
    memory: int
    """Main memory in bytes."""
    disk_free: int
    """Bytes free on the disk that holds attempts."""
    labels: list[str] = []
    """Words of its administrator that jobs may ask for."""
    enforced: list[Literal["memory", "cpus", "processes", "gpus", "network"]] = []
    """What its kernel holds jobs to. Memory that is not among these is looked at every two seconds; with `network`,
    jobs may ask for one of their own."""
    unenforced: str | None = None
    """Why its kernel holds jobs to no limits; null where it does, or where its worker is too old to tell."""
    unenforced_finding: Finding | None = None
    """What that is made of, for words in another language; null where it is not known."""
    draining: bool = False
    """Whether it takes no new jobs until it is resumed, or its maintenance ends; `state` tells that of a node that is
    heard."""
    maintenance: str | None = None
    """The reservation that it drains for; when that ends, it takes jobs again."""
    drain_message: str | None = None
    """Why it drains, in the administrator's words."""
    offenders: list[str] = []
    """Processes on GPUs that the queue has given to somebody else, or to nobody, in words."""
    offender_findings: list[Finding] = []
    """What those words are made of, for words in another language, as far as it is known."""
    devices: list["NodeDevice"]
    """Its GPUs, or CPU slots where it has none."""
    latest: dict[str, float]
    """Last telemetry sample of the node itself."""


class NewDrain(Resource):
    """``POST /nodes/{name}/drain``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: NoticeText = ""
    """Why, for everybody to read."""


class NewInvitation(Resource):
    """``POST /nodes/{name}/invitations``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expires_in: Annotated[Duration, Field(gt=0, le=7 * 86_400)] = 3600
    """After this long it no longer counts."""


class Invitation(Resource):
    """Invitation of one machine as a node. The only answer that ever shows the token, which counts once."""

    node: str
    """Name that the machine gets as a node."""
    token: str
    """Token with which it joins."""
    expires_at: datetime
    """When the token no longer counts."""


class NewNode(Resource):
    """``POST /nodes``, with the token of an invitation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    """Name of the invitation."""


class NodeToken(Resource):
    """Token of a node that has joined. The only answer that ever shows the secret."""

    node: str
    """Name of the node."""
    secret: str
    """What its worker's requests carry."""


class Holder(Resource):
    """A job that has a device."""

    job: str
    """Id of the job."""
    job_number: int
    """Number of the job."""
    job_name: str
    """Name of the job; empty where the caller may not read it."""
    readable: bool = True
    """Whether the caller may read the job; its name is not shown otherwise."""
    user: str
    """Owner of the job."""
    share: int | None
    """Bytes of the device's memory, if it is shared; null: all of the device."""


class NodeDevice(Resource):
    uuid: str
    """UUID of the device."""
    index: int
    """Its index on the node."""
    kind: DeviceKind
    """Whether it is a GPU or a CPU slot."""
    name: str
    """Its model."""
    memory: int
    """Its memory in bytes."""
    foreign_memory: int | None = None
    """Bytes of its memory that processes from outside of the queue hold: jobs get none of them."""
    unusable: str | None
    """Why it must not be used; null: it may be."""
    finding: Finding | None = None
    """What that is made of, for words in another language; null where it is not known."""
    topology: Topology | None = None
    """How near it is to the node's other GPUs, where the driver tells."""
    job: str | None
    """Id of the first job that has it; null: none has."""
    job_number: int | None
    """Number of that job."""
    job_name: str | None
    """Name of that job."""
    user: str | None
    """Owner of that job."""
    holders: list[Holder] = []
    """Everybody who has it, several if they share it; `job` is the first of them."""
    utilization: float | None
    """Percent of time in which it works; null where it cannot be measured."""
    memory_used: int | None
    """Bytes of its memory in use; null where it cannot be measured."""


class IdleReason(StrEnum):
    """Kind of reason for which a device is idle."""

    #: The queue is paused.
    QUEUE_PAUSED = "queue-paused"
    #: Its node takes no jobs.
    CLOSED = "closed"
    #: `job` starts on it with the next scheduling pass.
    STARTING = "starting"
    #: `job` starts on it once others have been stopped for it.
    PREEMPTING = "preempting"
    #: It is held for `job`, which is blocked: jobs that would not be gone by `until_us` may not start here.
    KEPT = "kept"
    #: It is reserved.
    RESERVED = "reserved"
    #: `job`, the first that could use the node, needs more than is free.
    TOO_FEW = "too-few"
    #: The jobs that could use it are over their quotas.
    QUOTA = "quota"
    #: The jobs that could use it are held, or wait for something else than devices.
    INELIGIBLE = "ineligible"
    #: Jobs wait, but none of them could use it.
    UNSUITABLE = "unsuitable"
    #: No other job waits.
    NOBODY = "nobody"
    #: `job` fits, and starts with one of the next passes.
    NEXT = "next"


class IdleDevices(Resource):
    """Devices of one node that no job has, all for the same reason."""

    node: str
    """Name of the node."""
    devices: list[int]
    """Indexes of the devices."""
    code: str = Field(json_schema_extra={"x-extensible-enum": list(IdleReason)})
    """Kind of the reason; later versions may add more."""
    message: str
    """Words that follow "idle: ", with the line that would let others be stopped."""
    params: dict[str, Any] = {}
    """What the message is made of, for words in another language; the keys depend on the code. `unstoppable` lists the
    jobs that cannot be stopped, with what keeps them from it."""
    job: int | None
    """Number of the job for which they are idle."""
    until: datetime | None
    """When that is expected to be over."""
    unstoppable: list[int] = []
    """Numbers of the jobs in its way that cannot be stopped for it."""
