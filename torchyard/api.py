"""What the REST API answers (``/api/v1``): one model per resource. Times are RFC 3339 UTC, sizes bytes."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from torchyard.spec import Priority
from torchyard.states import AttemptState, JobState, StopReason
from torchyard.wire import DeviceKind

Item = TypeVar("Item")
Number = float | Literal["nan", "inf", "-inf"]


class Resource(BaseModel):
    model_config = ConfigDict(frozen=True)


class Page(Resource, Generic[Item]):
    """One page of a list; `next` is the cursor of the one after, absent on the last."""

    items: list[Item]
    next: str | None = None


class Problem(Resource):
    """RFC 9457 problem details; `type` is one of the frozen URIs in `torchyard.problems`."""

    type: str
    title: str
    status: int
    detail: str
    errors: list["FieldProblem"] = []


class FieldProblem(Resource):
    """One wrong field: where, what, and the mend."""

    field: str
    message: str


class Progress(Resource):
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


class Attempt(Resource):
    id: str
    number: int
    state: AttemptState
    node: str
    devices: list[HeldDevice]
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    resumed_from_step: int | None
    exit_code: int | None
    signal: int | None
    error: JobError | None
    dropped_log_bytes: int
    dropped_records: int


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


class Series(Resource):
    """Points are ``[step, unix time in seconds, value]`` in order of steps."""

    name: str
    rank: int
    points: list[tuple[int, float, Number]]


class Metrics(Resource):
    series: list[Series]
    #: Pass as `since` to get only newer points.
    cursor: str


class LogStream(Resource):
    """One rank's log of one attempt; rank -1 is the launcher's."""

    attempt: int
    rank: int
    size: int
    dropped_bytes: int


class CheckpointFileInfo(Resource):
    name: str
    size: int
    sha256: str | None


class Checkpoint(Resource):
    id: str
    job: str
    attempt: int
    step: int
    #: committed: on its node only; stored: in the artifact store, hashes checked.
    state: Literal["committed", "stored"]
    best: bool
    pinned: bool
    created_at: datetime
    size: int
    metrics: dict[str, Number]
    files: list[CheckpointFileInfo]


class Output(Resource):
    name: str
    size: int
    sha256: str


class Node(Resource):
    name: str
    state: Literal["online", "draining", "unreachable"]
    hostname: str
    version: str
    last_seen_at: datetime | None
    cpus: int
    memory: int
    disk_free: int
    devices: list["NodeDevice"]
    #: Last telemetry sample of the node itself.
    latest: dict[str, float]


class NodeDevice(Resource):
    uuid: str
    index: int
    kind: DeviceKind
    name: str
    memory: int
    unusable: str | None
    job: str | None
    job_number: int | None
    job_name: str | None
    user: str | None
    #: Percent; None where it cannot be measured.
    utilization: float | None
    memory_used: int | None


class Why(Resource):
    """Why a job is where it is."""

    state: JobState
    #: One sentence for a person.
    summary: str
    #: Machine-readable reasons, the strongest first.
    reasons: list["Reason"]
    #: Place in the queue, from 1; None when it does not wait.
    position: int | None
    expected_start_at: datetime | None


class Reason(Resource):
    code: str
    message: str
    #: Jobs that hold what this one waits for.
    jobs: list[str] = []


class QueueEntry(Resource):
    position: int
    job: str
    number: int
    name: str
    user: str
    priority: Priority
    gpus: int
    held: bool
    reason: str


class User(Resource):
    id: str
    name: str
    admin: bool
    unix_user: str | None
    created_at: datetime


class Token(Resource):
    id: str
    user: str
    name: str
    scopes: list[str]
    node: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class NewToken(Token):
    """The only answer that ever shows the secret."""

    secret: str


class Project(Resource):
    name: str
    created_at: datetime


class MissingBlobs(Resource):
    """Hashes to upload (``PUT /snapshots/{id}/blobs/{sha256}``) before ``POST /snapshots/{id}/commit``."""

    id: str
    missing: list[str]
    committed: bool


class Settings(Resource):
    """What the dashboard needs to know of the installation and of who is looking."""

    version: str
    installation: str
    user: User
    scopes: list[str]
