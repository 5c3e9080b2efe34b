"""Records of jobs, their events and sweeps."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from service.db.records.record import Record
from service.db.records.spec import StoredSpec, StoredSweep
from torchyard import api
from torchyard.ids import JobId
from torchyard.states import JOB_FINAL, JobState, StopReason


@dataclass(frozen=True, slots=True)
class JobRecord(Record):
    """A row of `jobs`, whole."""

    id: JobId
    number: int
    name: str
    user_id: str
    project: str
    state: JobState
    version: int
    held: bool
    priority: int
    spec: StoredSpec
    code: str | None
    tags: list[str]
    attempt: int
    retries_used: int
    stop: StopReason | None
    stop_actor: str | None
    error: api.JobError | None
    step: int | None
    total_steps: int | None
    rerun_of: JobId | None
    restore_checkpoint: str | None
    last_event: int
    created_us: int
    queued_us: int
    started_us: int | None
    ended_us: int | None
    changed_us: int
    eligible_us: int
    blocked: bool
    ran_us: int
    retry_us: int | None
    preemptions: int
    restarts: int
    received_us: int | None
    group_id: str | None
    trial: int | None
    parameters: dict[str, Any] | None
    discarded_us: int | None
    carry_from: JobId | None
    inexact: str | None
    inexact_parts: list[Any] | None
    unsaved: str | None
    unsaved_parts: list[Any] | None
    link_serial: int
    link_expires_us: int | None

    def attempt_counts(self, number: int) -> bool:
        """Return whether the attempt of this number is more than a trial after which the job was put back."""
        return number > self.restarts


@dataclass(frozen=True, slots=True)
class JobVersion(Record):
    """Columns that change whenever the presentation of a job would: small enough to read before every answer."""

    id: JobId
    number: int
    user_id: str
    project: str
    state: JobState
    version: int
    last_event: int
    step: int | None
    total_steps: int | None
    metrics: object
    """Bytes of metrics that have come; only compared, as are the next two."""
    logs: object
    outputs: object

    @property
    def is_over(self) -> bool:
        """True once the job has ended."""
        return self.state in JOB_FINAL


@dataclass(frozen=True, slots=True)
class JobOwner(Record):
    """A job's id, and what decides who may read it."""

    id: JobId
    user_id: str
    project: str


@dataclass(frozen=True, slots=True)
class ShownJob(Record):
    """Columns of a job that the API shows, and the name of its owner."""

    id: JobId
    number: int
    name: str
    user_id: str
    user: str
    project: str
    state: JobState
    held: bool
    priority: int
    tags: list[str]
    version: int
    created_us: int
    started_us: int | None
    ended_us: int | None
    ran_us: int
    attempt: int
    step: int | None
    total_steps: int | None
    stop: StopReason | None
    error: api.JobError | None
    rerun_of: JobId | None
    restore_checkpoint: str | None
    spec: StoredSpec
    blocked: bool
    group_id: str | None
    trial: int | None
    parameters: dict[str, Any] | None
    discarded_us: int | None
    inexact: str | None
    inexact_parts: list[Any] | None
    unsaved: str | None
    unsaved_parts: list[Any] | None


@dataclass(frozen=True, slots=True)
class SpecRecord(Record):
    """A job's spec alone."""

    spec: StoredSpec


class StopRequest(BaseModel, frozen=True):
    """Data of an event ``stop-requested``, as it is stored."""

    reason: StopReason
    detail: str | None = None
    """Why, in words; None in an event of an earlier version."""


@dataclass(frozen=True, slots=True)
class EventRecord(Record):
    """A row of `events`."""

    job_id: JobId
    seq: int
    at_us: int
    kind: str
    state: JobState
    attempt: int | None
    actor: str | None
    message: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupRecord(Record):
    """A row of `groups`: the jobs of one sweep."""

    id: str
    number: int
    user_id: str
    project: str
    name: str
    sweep: StoredSweep
    size: int
    paused: str | None
    resumed_us: int | None
    created_us: int


@dataclass(frozen=True, slots=True)
class ShownGroup(GroupRecord):
    """A row of `groups` and the name of its owner."""

    user: str
