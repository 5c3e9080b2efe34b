"""Jobs as the REST API shows and changes them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from torchyard.api.base import Number, Resource
from torchyard.quantities import Duration
from torchyard.spec import Priority, Tag
from torchyard.spec.base import NAME
from torchyard.states import JobState, StopReason
from torchyard.wire import DeviceKind


class ProgressSource(StrEnum):
    """Where a job's progress comes from."""

    REPORTED = "reported"
    """The job reports it."""
    PRINTED = "printed"
    """Read from its progress bars and from lines such as ``epoch 3/90``."""
    TRACKER = "tracker"
    """Newest step that its tracker logged."""


class Progress(Resource):
    source: ProgressSource = ProgressSource.REPORTED
    step: int
    total_steps: int | None
    eta_s: float | None


class JobError(Resource):
    """Why a job failed."""

    cause: str
    message: str
    rank: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    traceback: str | None = None


class Storage(Resource):
    checkpoints: int
    outputs: int
    logs: int

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self.checkpoints + self.outputs + self.logs


class HeldDevice(Resource):
    node: str
    uuid: str
    index: int
    kind: DeviceKind


class Job(Resource):
    id: str
    number: int
    name: str
    user: str
    project: str
    state: JobState
    held: bool
    priority: Priority
    tags: list[str]
    version: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    #: Number of the current attempt, from 1; 0 before the first.
    attempt: int
    gpus: int
    devices: list[HeldDevice]
    progress: Progress | None
    #: Last value of each metric of the lowest rank that reports.
    latest: dict[str, Number]
    stop: StopReason | None
    error: JobError | None
    storage: Storage
    rerun_of: str | None
    resumed_from: str | None
    spec: dict[str, Any]
    #: Waits for jobs that its spec names in `after`.
    blocked: bool = False
    #: The sweep it is a trial of, its number there from 1, and its values of the sweep's parameters.
    group: str | None = None
    trial: int | None = None
    parameters: dict[str, Any] | None = None
    #: When its logs, metrics, checkpoints and outputs were taken away; None: they are kept.
    discarded_at: datetime | None = None
    #: Why it is not, or would not be, resumed exactly; None: nothing tells against it.
    inexact: str | None = None
    #: Why its newest checkpoint could not be written; None once one was.
    unsaved: str | None = None
    #: Place in the queue, from 1; only lists in the order of the queue tell it.
    place: int | None = None


class JobCounts(Resource):
    """``GET /jobs/counts``: jobs by state; a state that no job is in is absent."""

    states: dict[JobState, int]
    most: int
    """Jobs of a state that are counted at most: a count that reaches it means so many or more."""


#: What the jobs of a list are counted by.
FacetKind = Literal["user", "project", "sweep", "tag"]


class Facet(Resource):
    """Jobs of a list that have one user, project, sweep or tag, by state."""

    #: What a list is filtered by for these jobs: a name, or a sweep's number; empty for those without sweep or tag.
    value: str
    #: What people call it.
    title: str
    states: dict[JobState, int]


class JobChanges(Resource):
    """``PATCH /jobs/{id}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    priority: Priority | None = None
    tags: Annotated[list[Tag], Field(max_length=32)] | None = None
    #: Only of a job that waits; null takes the limit away.
    time_limit: Duration | None = None


class Rerun(Resource):
    """``POST /jobs/{id}/rerun``: a new job of the same spec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A checkpoint's id, or `latest` or `best`; absent: from the beginning.
    from_checkpoint: str | None = None
    #: Without a checkpoint: begin with the files that the job has left, instead of those that it was submitted with.
    carry: bool = False
    #: Merged into the spec (RFC 7396): null takes a field's default.
    changes: dict[str, Any] = {}


class Event(Resource):
    """One thing that happened to a job; `seq` counts per job from 1."""

    seq: int
    at: datetime
    kind: str
    state: JobState
    attempt: int | None
    actor: str | None
    message: str
    data: dict[str, Any]
