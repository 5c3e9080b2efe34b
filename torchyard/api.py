"""What the REST API answers (``/api/v1``): one model per resource. Times are RFC 3339 UTC, sizes bytes."""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from torchyard.quantities import Duration
from torchyard.spec import NAME, Priority, Tag
from torchyard.states import AttemptState, JobState, StopReason
from torchyard.wire import DeviceKind, FileRef, ProcessStack, Topology

#: Where the API lies; the next version would lie beside it.
PREFIX = "/api/v1"

Item = TypeVar("Item")
Scope = Literal["read", "submit", "admin", "node"]
Number = float | Literal["nan", "inf", "-inf"]


def _storable(text: str) -> str:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must not contain NUL or lone surrogates")
    return text


#: What databases can hold.
Text = Annotated[str, AfterValidator(_storable)]


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


class Group(Resource):
    """All jobs of one sweep: what ``POST /jobs`` answers to a spec with `sweep`."""

    id: str
    #: From the numbers of jobs; its trials have the ones that follow.
    number: int
    name: str
    user: str
    project: str
    created_at: datetime
    #: When the last trial ended; None before.
    ended_at: datetime | None
    #: How many jobs it has.
    size: int
    #: The spec's `sweep`.
    sweep: dict[str, Any]
    #: Why no trial that waits starts, until somebody resumes it.
    paused: str | None
    #: Waiting trials that are held.
    held: int
    #: Trials by state; a state that none is in is absent.
    states: dict[JobState, int]
    #: Of those cancelled, how many because others do better.
    stopped_early: int
    #: What trials are compared by: what was asked for, else the sweep's `stop`, else the spec's `checkpoint.keep_best`.
    metric: str | None
    mode: Literal["min", "max"] | None
    #: The trial whose last value is best; never in lists of groups.
    best: Job | None


class JobCounts(Resource):
    """``GET /jobs/counts``: jobs by state; a state that no job is in is absent."""

    states: dict[JobState, int]


class DryRun(Resource):
    """What a submission would store; `note` says what could not be checked."""

    spec: dict[str, Any]
    world_size: int
    note: str
    #: Of a sweep: how many jobs it would make, and the first of them.
    trials: int | None = None
    first_trials: list["PlannedTrial"] = []


class PlannedTrial(Resource):
    """One job that a sweep would make."""

    name: str
    parameters: dict[str, Any]


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


class Member(Resource):
    """An attempt's part on one node, and the ranks of its processes."""

    node: str
    node_rank: int
    first_rank: int
    last_rank: int
    #: When it ended, if it did before the attempt.
    ended_at: datetime | None
    #: Whether the node has stored or listed all that the part left.
    settled: bool = True


class Attempt(Resource):
    id: str
    number: int
    state: AttemptState
    #: Its first node.
    node: str
    members: list[Member]
    devices: list[HeldDevice]
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    resumed_from_step: int | None
    exit_code: int | None
    signal: int | None
    error: JobError | None
    #: Of its logs, by a full disk or `log_limit`.
    dropped_log_bytes: int
    #: Metric records that were lost, mostly because the disk was full: their points are missing.
    dropped_records: int
    #: Whether all that it left is stored or listed; until then files may still arrive.
    settled: bool = True
    #: The attempt whose files it began with.
    carried_from: str | None = None


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
    #: Whether the points replace what was read before (no `since`, or a later attempt has resumed) or follow it.
    reset: bool


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


class Stacks(Resource):
    """What the processes of an attempt did on one node at one moment."""

    attempt: int
    node: str
    node_rank: int
    #: Grows with every time that they were asked for.
    serial: int
    at: datetime
    #: What each rank did, in words.
    summary: str
    #: The ranks' own processes first.
    processes: list[ProcessStack]
    #: Processes left out, for there are too many.
    left_out: int


class Output(Resource):
    """A file that the job has written. One name may stand for several files: of other folders, and of other nodes."""

    #: Its path below the folder that `root` names.
    name: str
    size: int
    #: Empty while it is not known.
    sha256: str
    #: ``output``: TORCHYARD_OUTPUT_DIR; ``code``: the working folder; ``job``: beside it, ``../data/x`` is ``data/x``.
    root: Literal["output", "code", "job"] = "output"
    node_rank: int = 0
    #: The node that it was written on, and the number of the attempt.
    node: str | None = None
    attempt: int | None = None
    #: ``stored``: it can be downloaded; ``arriving``: not yet; ``on-node``: too large for the store, it stays on its
    #: node at `place`, until it is asked for or discarded; ``deleted``: the job has removed it.
    state: Literal["stored", "arriving", "on-node", "deleted"] = "stored"
    place: str | None = None
    #: It was asked for, and its node has not brought it yet.
    wanted: bool = False
    #: SHA-256 of the file of this name that the job was submitted with.
    baseline: str | None = None
    mode: int = 0o644


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
    #: The reservation that it drains for; when that ends, it takes jobs again.
    maintenance: str | None = None
    #: Processes on GPUs that the queue has given to somebody else, or to nobody, in words.
    offenders: list[str] = []
    devices: list["NodeDevice"]
    #: Last telemetry sample of the node itself.
    latest: dict[str, float]


class Holder(Resource):
    """A job that has a device."""

    job: str
    job_number: int
    job_name: str
    user: str
    #: Bytes of the device's memory, if it is shared; None: all of the device.
    share: int | None


class NodeDevice(Resource):
    uuid: str
    index: int
    kind: DeviceKind
    name: str
    memory: int
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


class Why(Resource):
    """Why a job is where it is."""

    state: JobState
    #: One sentence for a person.
    summary: str
    #: Machine-readable reasons, the strongest first.
    reasons: list["Reason"]
    #: Place in the queue, from 1; None when it does not wait.
    position: int | None
    #: When it starts, in half of such cases, and in nine of ten; None where that cannot be told.
    expected_start_at: datetime | None
    expected_start_p90_at: datetime | None = None
    #: When a job that runs is over, in half of such cases, and in nine of ten.
    expected_end_at: datetime | None = None
    expected_end_p90_at: datetime | None = None
    #: What would start a waiting job now, or much sooner.
    alternatives: list["Alternative"] = []


class Reason(Resource):
    code: str
    message: str
    #: Jobs that hold what this one waits for.
    jobs: list[str] = []
    #: When it is expected to be over, in half of such cases.
    until: datetime | None = None


class Alternative(Resource):
    """A change of the spec with which a waiting job would start now, or much sooner."""

    #: Fields of the spec by their dotted paths, such as ``resources.gpus``; null takes a field's default.
    change: dict[str, Any]
    message: str
    #: Or when it is expected to.
    starts: Literal["now"] | datetime
    #: What to type.
    command: str


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
    #: As of `Why`; only of the first jobs of the queue.
    expected_start_at: datetime | None = None
    expected_start_p90_at: datetime | None = None


class Calibration(Resource):
    """``GET /queue/calibration``: what estimates of running times turned out to be worth."""

    sources: list["SourceCalibration"]


class SourceCalibration(Resource):
    """Forecasts from one source, against how long the jobs then took."""

    #: progress (the job's own steps), history (jobs of the same user, project and work), history-user, history-project,
    #: limit (the time limit), outrun (jobs that ran longer than all their like).
    source: str
    #: Jobs that it is judged by, the newest that succeeded.
    n: int
    #: Shares of them that were done by p10, p50 and p90; ideally 0.1, 0.5 and 0.9.
    p10: float
    p50: float
    p90: float
    #: Median of the error of p50, as a part of what the job took.
    median_relative_error: float
    since: datetime


class User(Resource):
    id: str
    name: str
    admin: bool
    unix_user: str | None
    created_at: datetime
    #: False: all tokens have ended; jobs and usage stay.
    active: bool = True
    #: Why nodes would not run this user's jobs, with the mend.
    warning: str | None = None


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


class NewUser(Resource):
    """``POST /users``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    admin: bool = False
    #: The account as which this user's jobs run where the worker runs as root.
    unix_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] | None = None


class TokenRequest(Resource):
    """``POST /tokens``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    #: Another user's name; only administrators.
    user: Text | None = None
    #: The node that a token of the scope node belongs to.
    node: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    #: After this long it no longer counts; absent: until it is revoked.
    expires_in: Duration | None = None


class NewProject(Resource):
    """``POST /projects``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]


class SignIn(Resource):
    """``POST /session``: a token or a one-time code, one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str | None = None
    code: str | None = None


class SignInCode(Resource):
    """Opens one session as its maker: ``<url>/#login=<code>``."""

    code: str
    expires_at: datetime


class AuditEntry(Resource):
    """What somebody changed, beside the jobs' own events."""

    id: str
    at: datetime
    user: str
    action: str
    subject: str
    data: dict[str, Any]


class Project(Resource):
    name: str
    created_at: datetime


class NewSnapshot(Resource):
    """Manifest of a code snapshot; paths are relative to its folder."""

    files: list[FileRef]


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
    #: Seconds after its end for which a job's files are kept, unless it has the tag `keep`; None: for ever.
    keep_ended_s: int | None = None
