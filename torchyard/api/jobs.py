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
from torchyard.wire import Clause, DeviceKind


class ProgressSource(StrEnum):
    """The source of a job's progress."""

    REPORTED = "reported"
    """The job reports it."""
    PRINTED = "printed"
    """Read from its progress bars and from lines such as ``epoch 3/90``."""
    TRACKER = "tracker"
    """Newest step that its tracker logged."""


class Progress(Resource):
    source: ProgressSource = ProgressSource.REPORTED
    """How it is known."""
    step: int
    """Steps that are done."""
    total_steps: int | None
    """Steps of the whole run; null: not known."""
    eta_s: float | None
    """Seconds until the run is done; null: not known."""


class FailureCause(StrEnum):
    """Causes of failures that are known."""

    EXIT = "exit"
    UNUSABLE = "unusable"
    TIME_LIMIT = "time-limit"
    IDLE = "idle"
    HUNG = "hung"
    START_LIMIT = "start-limit"
    DEPENDENCY = "dependency"
    GPU_FAULT = "gpu-fault"
    NCCL_TIMEOUT = "nccl-timeout"
    OUT_OF_MEMORY = "out-of-memory"
    HOST_MEMORY = "host-memory"
    DISK_LIMIT = "disk-limit"
    GPU_TRESPASS = "gpu-trespass"
    PROCESS_LIMIT = "process-limit"
    MEMORY_LIMIT = "memory-limit"
    NODE_MEMORY = "node-memory"
    SHARED_MEMORY = "shared-memory"
    NOT_FINITE = "not-finite"
    ADDRESS_IN_USE = "address-in-use"
    LOST_RANK = "lost-rank"
    OWN_PROCESSES = "own-processes"
    NO_STORE = "no-store"
    NO_RANKS = "no-ranks"
    NO_TORCH = "no-torch"
    SINGLE_SAMPLE = "single-sample"
    DRIVER_MISMATCH = "driver-mismatch"
    DEVICE_ASSERT = "device-assert"
    MISSING_MODULE = "missing-module"
    IMPORT_ERROR = "import-error"
    DISK_FULL = "disk-full"
    MISSING_FILE = "missing-file"
    MISSING_SCRIPT = "missing-script"
    NO_INPUT = "no-input"
    PERMISSION = "permission"
    CODE_ERROR = "code-error"
    KILLED = "killed"
    BUS_ERROR = "bus-error"
    CRASH = "crash"
    LOST = "lost"


class JobError(Resource):
    """Why a job failed."""

    cause: str = Field(json_schema_extra={"x-extensible-enum": list(FailureCause)})
    """Machine-readable cause, such as `exit` or `out-of-memory`."""
    message: str
    """What happened, and the mend."""
    rank: int | None = None
    """The rank that failed first; null: none in particular."""
    exit_code: int | None = None
    """Its exit code; null: it has none."""
    signal: int | None = None
    """The signal that ended it; null: none did."""
    traceback: str | None = None
    """End of its traceback; null: there is none."""
    params: dict[str, Any] = {}
    """What the message is made of; the keys depend on the cause, and on `told`: `exit`, how its process ended, and the
    advice on the cause; `said`, words of its own, and that advice; `advice`, that alone. Empty for older jobs.
    """


class Storage(Resource):
    checkpoints: int
    """Bytes of its checkpoints."""
    outputs: int
    """Bytes of the files that it has written."""
    logs: int
    """Bytes of its logs."""
    saved: bool = False
    """Whether it has had a checkpoint, deleted by now or not."""

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self.checkpoints + self.outputs + self.logs


class HeldDevice(Resource):
    node: str
    """Name of its node."""
    uuid: str
    """UUID of the device."""
    index: int
    """Its index on the node."""
    kind: DeviceKind
    """Whether it is a GPU or a CPU slot."""


class Job(Resource):
    id: str
    """Its id."""
    number: int
    """Its number, which people use."""
    name: str
    """Its name; need not be unique."""
    user: str
    """Its owner."""
    project: str
    """The project whose share it uses."""
    state: JobState
    """Where it is on its way."""
    held: bool
    """Whether it is kept from starting until it is released."""
    priority: Priority
    """Its class in the queue."""
    tags: list[str]
    """Words to filter by."""
    version: int
    """Grows with every change; the ETag has it."""
    created_at: datetime
    """When it was submitted."""
    started_at: datetime | None
    """When its first instruction ran; null: it has not started."""
    ended_at: datetime | None
    """When it ended; null: it has not."""
    attempt: int
    """Number of the current attempt, from 1; 0 before the first."""
    gpus: int
    """GPUs (or CPU slots) that it asks for, on all nodes."""
    devices: list[HeldDevice]
    """Devices that it has now."""
    progress: Progress | None
    """How far it is; null: that is not known."""
    latest: dict[str, Number]
    """Last value of each metric of the lowest rank that reports."""
    stop: StopReason | None
    """Why it is asked to stop; null: it is not."""
    error: JobError | None
    """Why it failed; null: it did not."""
    storage: Storage
    """Bytes that it holds in the store."""
    rerun_of: str | None
    """Id of the job that it runs again; null: of none."""
    resumed_from: str | None
    """Id of the checkpoint that it began with; null: none."""
    # By its own title generators of clients would call it what JobSpec is called already.
    spec: dict[str, Any] = Field(title="Submitted spec")
    """The spec as it was submitted, with its defaults."""
    blocked: bool = False
    """Whether it waits for jobs that its spec names in `after`."""
    group: str | None = None
    """Id of the sweep that it is a trial of; null: of none."""
    trial: int | None = None
    """Its number in the sweep, from 1."""
    parameters: dict[str, Any] | None = None
    """Its values of the sweep's parameters."""
    discarded_at: datetime | None = None
    """When its logs, metrics, checkpoints and outputs were taken away; null: they are kept."""
    inexact: str | None = None
    """Why it is not, or would not be, resumed exactly; null: nothing tells against it."""
    inexact_parts: list[Clause] = []
    """The same in sentences, if one of them has a code."""
    unsaved: str | None = None
    """Why its newest checkpoint could not be written; null once one was."""
    unsaved_parts: list[Clause] = []
    """The same in sentences, if one of them has a code."""
    ran_s: float = 0
    """Seconds that its attempts ran which have ended, without the waits between them."""
    running_since: datetime | None = None
    """When the first instruction of the attempt ran that it has now; null: it has none, or that has not started."""
    place: int | None = None
    """Place in the queue, from 1; only lists in the order of the queue tell it."""

    def running_s(self, at: datetime) -> float:
        """Seconds that it has run by a moment, without its waits."""
        return self.ran_s + (0 if self.running_since is None else max(0, (at - self.running_since).total_seconds()))


class JobCounts(Resource):
    """``GET /jobs/counts``: jobs by state; a state that no job is in is absent."""

    states: dict[JobState, int]
    """How many jobs are in each state; a state that none is in is absent."""
    most: int
    """Jobs of a state that are counted at most."""
    more: list[JobState] = []
    """States of which there are more jobs than were counted, or may be, since not all were looked at."""


#: What the jobs of a list are counted by.
FacetKind = Literal["user", "project", "sweep", "tag"]


class Facet(Resource):
    """Jobs of a list that have one user, project, sweep or tag, by state."""

    value: str
    """What a list is filtered by for these jobs: a name, or a sweep's number; empty for those without sweep or tag."""
    title: str
    """What people call it."""
    states: dict[JobState, int]
    """How many of the jobs are in each state."""
    more: bool = False
    """The list has more jobs than were counted, so these may be more as well."""


class JobChanges(Resource):
    """``PATCH /jobs/{id}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    """New name."""
    priority: Priority | None = None
    """New class in the queue."""
    tags: Annotated[list[Tag], Field(max_length=32)] | None = None
    """All its tags from now on."""
    time_limit: Duration | None = None
    """New time limit of a job that waits; null takes the limit away."""


class Rerun(Resource):
    """``POST /jobs/{id}/rerun``: a new job of the same spec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    from_checkpoint: str | None = None
    """A checkpoint's id, or `latest` or `best`; absent: from the beginning."""
    carry: bool = False
    """Without a checkpoint: begin with the files that the job has left, instead of those that it was submitted with."""
    changes: dict[str, Any] = {}
    """Merged into the spec (RFC 7396): null takes a field's default."""


class EventKind(StrEnum):
    """Kinds of events that are known."""

    SUBMITTED = "submitted"
    HELD = "held"
    RELEASED = "released"
    CHANGED = "changed"
    UNBLOCKED = "unblocked"
    ASSIGNED = "assigned"
    CLAIMED = "claimed"
    PREPARED = "prepared"
    RUNNING = "running"
    VOIDED = "voided"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_REQUESTED = "checkpoint-requested"
    CHECKPOINT_FAILED = "checkpoint-failed"
    INEXACT = "inexact"
    STACKS_REQUESTED = "stacks-requested"
    STACKS = "stacks"
    HANGS = "hangs"
    IDLE = "idle"
    GOES_ON = "goes-on"
    NOT_JOINED = "not-joined"
    JOINED = "joined"
    AWAITING = "awaiting"
    AWAITING_ABANDONED = "awaiting-abandoned"
    PREEMPTING = "preempting"
    PREEMPTION_ABANDONED = "preemption-abandoned"
    PUT_BACK = "put-back"
    REQUEUED = "requeued"
    STOP_REQUESTED = "stop-requested"
    UNREACHABLE = "unreachable"
    REACHABLE = "reachable"
    PART_ENDED = "part-ended"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SHARED = "shared"
    UNSHARED = "unshared"
    DISCARDED = "discarded"


class Event(Resource):
    """One thing that happened to a job; `seq` counts per job from 1."""

    seq: int
    """Its number among the job's events, from 1."""
    at: datetime
    """When it happened."""
    kind: str = Field(json_schema_extra={"x-extensible-enum": list(EventKind)})
    """What happened, such as `submitted` or `state`."""
    state: JobState
    """The job's state afterwards."""
    attempt: int | None
    """Number of the attempt that it concerns; null: none."""
    actor: str | None
    """The user who did it; null: the queue itself."""
    message: str
    """What happened, in words."""
    data: dict[str, Any]
    """Details that depend on the kind."""
