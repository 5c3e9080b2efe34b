"""Queue, forecasts and explanations as the REST API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from torchyard.api.base import Resource
from torchyard.ids import JobId
from torchyard.spec import Priority
from torchyard.states import JobState


class Why(Resource):
    """Why a job is where it is."""

    state: JobState
    """The job's state."""
    summary: str
    """One sentence for a person."""
    reasons: list["Reason"]
    """Machine-readable reasons, the strongest first."""
    position: int | None
    """Place in the queue, from 1; null when it does not wait."""
    expected_start_at: datetime | None
    """When it starts, in half of such cases; null where that cannot be told."""
    expected_start_p90_at: datetime | None = None
    """When it starts, in nine of ten such cases."""
    expected_end_at: datetime | None = None
    """When a job that runs is over, in half of such cases."""
    expected_end_p90_at: datetime | None = None
    """When a job that runs is over, in nine of ten such cases."""
    alternatives: list["Alternative"] = []
    """What would start a waiting job now, or much sooner."""


class ReasonCode(StrEnum):
    """Reasons that are known; a job that has failed has the cause of its error instead."""

    HELD = "held"
    SAVING = "saving"
    RESTING = "resting"
    PAUSED = "paused"
    DEPENDENCY = "dependency"
    SECRET = "secret"  # noqa: S105 - the kind of a reason
    QUEUE_PAUSED = "queue-paused"
    NO_NODES = "no-nodes"
    NEVER_FITS = "never-fits"
    QUOTA = "quota"
    SWEEP_CAP = "sweep-cap"
    STARTING = "starting"
    MAKING_ROOM = "making-room"
    NO_GPUS = "no-gpus"
    OUTDATED = "outdated"
    ACCOUNT = "account"
    UNUSABLE = "unusable"
    GPUS = "gpus"
    CPUS = "cpus"
    MEMORY = "memory"
    BEHIND = "behind"
    RESERVED = "reserved"
    NODES = "nodes"
    UNSTOPPABLE = "unstoppable"
    DRAINING = "draining"
    UNREACHABLE = "unreachable"
    DISK_FLOOR = "disk-floor"
    SERVICE_DISK = "service-disk"
    #: Of jobs that do not wait.
    ASSIGNED = "assigned"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    PLACEMENT = "placement"
    GIVING_WAY = "giving-way"
    FILES_ARRIVING = "files-arriving"
    NOT_JOINED = "not-joined"
    UNWATCHED = "unwatched"
    END = "end"
    #: Beside others.
    BEFORE = "before"
    ADVICE = "advice"


class Reason(Resource):
    code: str = Field(json_schema_extra={"x-extensible-enum": list(ReasonCode)})
    """Machine-readable reason."""
    message: str
    """The reason in words."""
    jobs: list[JobId] = []
    """Jobs that hold what this one waits for."""
    until: datetime | None = None
    """When it is expected to be over, in half of such cases."""
    params: dict[str, Any] = {}
    """What the message is made of, for words in another language; empty where the message alone says it. Times are
    written as in the message."""


class Alternative(Resource):
    """A change of the spec with which a waiting job would start now, or much sooner."""

    change: dict[str, Any]
    """Fields of the spec by their dotted paths, such as ``resources.gpus``; null takes a field's default."""
    message: str
    """The change, in words."""
    nodes: list[str] = []
    """Where it would start now."""
    starts: Literal["now"] | datetime
    """Or when it is expected to."""
    command: str
    """What to type."""


class QueueEntry(Resource):
    position: int
    """Place in the queue, from 1."""
    job: str
    """Id of the job."""
    number: int
    """Number of the job."""
    name: str
    """Name of the job; empty where the caller may not read it."""
    readable: bool = True
    """Whether the caller may read the job; its name is not shown otherwise."""
    user: str
    """Owner of the job."""
    priority: Priority
    """Its class in the queue."""
    gpus: int
    """GPUs (or CPU slots) that it asks for, on all nodes."""
    held: bool
    """Whether it is kept from starting until it is released."""
    reason: str
    """Why it waits, in words."""
    reason_code: str = ""
    """The same as a machine-readable reason."""
    reason_params: dict[str, Any] = {}
    """What `reason` is made of, as in ``GET /jobs/{job_id}/why``."""
    expected_start_at: datetime | None = None
    """When it starts, in half of such cases; only of the first jobs of the queue."""
    expected_start_p90_at: datetime | None = None
    """When it starts, in nine of ten such cases."""


class Calibration(Resource):
    """``GET /queue/calibration``: what estimates of running times turned out to be worth."""

    sources: list["SourceCalibration"]
    """One entry for each source of forecasts."""


class SourceCalibration(Resource):
    """Forecasts from one source, against how long the jobs then took."""

    source: str
    """progress (steps that the job reported), progress-printed (steps that it printed), history (jobs of the same user,
    project and work), history-user, history-project, limit (the time limit), outrun (jobs that ran longer than all
    their like)."""
    n: int
    """Jobs that it is judged by, the newest that succeeded."""
    p10: float
    """Share of them that was done by the forecast's p10; ideally 0.1."""
    p50: float
    """Share of them that was done by the forecast's p50; ideally 0.5."""
    p90: float
    """Share of them that was done by the forecast's p90; ideally 0.9."""
    median_relative_error: float
    """Median of the error of p50, as a part of what the job took."""
    since: datetime
    """End of the oldest of these jobs."""
