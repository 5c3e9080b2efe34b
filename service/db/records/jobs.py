"""Records of jobs, their events and sweeps."""

from dataclasses import dataclass
from typing import Any

from service.db.records.record import Record
from service.db.records.spec import StoredSpec, StoredSweep
from torchyard import api
from torchyard.states import JobState, StopReason


@dataclass(frozen=True, slots=True)
class JobRecord(Record):
    """A row of `jobs`, whole."""

    id: str
    number: int
    name: str
    user_id: str
    project: str
    state: JobState
    version: int
    held: bool
    priority: int
    spec: StoredSpec
    tags: list[str]
    attempt: int
    retries_used: int
    stop: StopReason | None
    stop_actor: str | None
    error: api.JobError | None
    step: int | None
    total_steps: int | None
    rerun_of: str | None
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
    group_id: str | None
    trial: int | None
    parameters: dict[str, Any] | None
    discarded_us: int | None
    carry_from: str | None
    inexact: str | None
    unsaved: str | None


@dataclass(frozen=True, slots=True)
class EventRecord(Record):
    """A row of `events`."""

    job_id: str
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
