"""Nodes and their devices as the REST API shows them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from torchyard.api.base import Resource
from torchyard.api.notices import NoticeText
from torchyard.quantities import Duration
from torchyard.spec.base import NAME
from torchyard.wire import DeviceKind, Topology


class Node(Resource):
    name: str
    state: Literal["online", "draining", "unreachable"]
    hostname: str
    version: str
    last_seen_at: datetime | None
    cpus: int
    memory: int
    disk_free: int
    #: Words of its administrator that jobs may ask for.
    labels: list[str] = []
    #: What its kernel holds jobs to. Memory that is not among these is looked at every two seconds; with
    #: `network`, jobs may ask for one of their own.
    enforced: list[Literal["memory", "cpus", "processes", "gpus", "network"]] = []
    #: Why its kernel holds jobs to no limits; None where it does, or where its worker is too old to tell.
    unenforced: str | None = None
    #: The reservation that it drains for; when that ends, it takes jobs again.
    maintenance: str | None = None
    #: Why it drains, in the administrator's words.
    drain_message: str | None = None
    #: Processes on GPUs that the queue has given to somebody else, or to nobody, in words.
    offenders: list[str] = []
    devices: list["NodeDevice"]
    #: Last telemetry sample of the node itself.
    latest: dict[str, float]


class NewDrain(Resource):
    """``POST /nodes/{name}/drain``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Why, for everybody to read.
    message: NoticeText = ""


class NewInvitation(Resource):
    """``POST /nodes/{name}/invitations``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: After this long it no longer counts.
    expires_in: Annotated[Duration, Field(gt=0, le=7 * 86_400)] = 3600


class Invitation(Resource):
    """Invitation of one machine as a node. The only answer that ever shows the token, which counts once."""

    node: str
    token: str
    expires_at: datetime


class NewNode(Resource):
    """``POST /nodes``, with the token of an invitation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]


class NodeToken(Resource):
    """Token of a node that has joined. The only answer that ever shows the secret."""

    node: str
    secret: str


class Holder(Resource):
    """A job that has a device."""

    job: str
    job_number: int
    job_name: str
    #: Whether the caller may read the job; its name is not shown otherwise.
    readable: bool = True
    user: str
    #: Bytes of the device's memory, if it is shared; None: all of the device.
    share: int | None


class NodeDevice(Resource):
    uuid: str
    index: int
    kind: DeviceKind
    name: str
    memory: int
    #: Bytes of it that processes from outside of the queue hold: jobs get none of them.
    foreign_memory: int | None = None
    unusable: str | None
    #: How near it is to the node's other GPUs, where the driver tells.
    topology: Topology | None = None
    job: str | None
    job_number: int | None
    job_name: str | None
    user: str | None
    #: Everybody who has it, several if they share it; `job` is the first of them.
    holders: list[Holder] = []
    #: Percent; None where it cannot be measured.
    utilization: float | None
    memory_used: int | None


class IdleDevices(Resource):
    """Devices of one node that no job has, all for the same reason."""

    node: str
    #: Their indexes.
    devices: list[int]
    #: queue-paused, closed, starting, preempting, kept, reserved, too-few, quota, ineligible, unsuitable, nobody, next.
    code: str
    #: Words that follow "idle: ", with the line that would let others be stopped.
    message: str
    #: Number of the job for which they are idle.
    job: int | None
    #: When that is expected to be over.
    until: datetime | None
    #: Numbers of the jobs in its way that cannot be stopped for it.
    unstoppable: list[int] = []
