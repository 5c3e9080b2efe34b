"""Sweeps as the REST API shows them, and dry runs of submissions."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from torchyard.api.base import Resource
from torchyard.api.jobs import HeldDevice, Job
from torchyard.states import JobState


class Group(Resource):
    """All jobs of one sweep: what ``POST /jobs`` answers to a spec with `sweep`."""

    id: str
    """Its id."""
    number: int
    """From the numbers of jobs; its trials have the ones that follow."""
    name: str
    """Name of the sweep."""
    user: str
    """Its owner."""
    project: str
    """The project whose share it uses."""
    created_at: datetime
    """When it was submitted."""
    ended_at: datetime | None
    """When the last trial ended; null before."""
    size: int
    """How many jobs it has."""
    sweep: dict[str, Any]
    """The spec's `sweep`."""
    paused: str | None
    """Why no trial that waits starts, until somebody resumes it."""
    held: int
    """Waiting trials that are held."""
    states: dict[JobState, int]
    """Trials by state; a state that none is in is absent."""
    stopped_early: int
    """Of those cancelled, how many because others do better."""
    metric: str | None
    """What trials are compared by: what was asked for, else the sweep's `stop`, else the spec's
    `checkpoint.keep_best`."""
    mode: Literal["min", "max"] | None
    """Whether small or large values are good."""
    best: Job | None
    """The trial whose last value is best; never in lists of groups."""


class NoteCode(StrEnum):
    """Notes on a submission that are known."""

    #: No node has registered yet, so whether it fits one is not known.
    NO_NODES = "no-nodes"
    #: One node could hold all of it; what the network between its nodes moves.
    ONE_NODE = "one-node"
    NETWORK = "network"
    #: The launcher that was chosen.
    LAUNCHER = "launcher"
    #: The number for `gpus: all`: what a node can give, or what the quota allows.
    NODE_GPUS = "node-gpus"
    QUOTA_GPUS = "quota-gpus"
    #: It goes on with another effective batch than it was begun with.
    OTHER_BATCH = "other-batch"
    #: Less memory of a GPU would do.
    GPU_MEMORY = "gpu-memory"
    NEW_PROJECT = "new-project"
    #: Whether it may be stopped for others, or put back to start over.
    STOPPABLE = "stoppable"
    NEVER_STOPPED = "never-stopped"
    PUT_BACK = "put-back"
    NEVER_PUT_BACK = "never-put-back"
    #: Its rule for hanging counts for steps that are reported.
    HANG_STEPS = "hang-steps"


class SubmissionNote(Resource):
    """Note on a submission, such as advice."""

    code: str = Field(json_schema_extra={"x-extensible-enum": list(NoteCode)})
    """Machine-readable kind."""
    message: str
    """The note in words."""
    params: dict[str, Any] = {}
    """What the message is made of, for words in another language."""


class DryRun(Resource):
    """The job that a submission would store; `note` says what could not be checked."""

    spec: dict[str, Any]
    """The spec with all its defaults."""
    world_size: int
    """Processes that a job would have."""
    note: str
    """What could not be checked; empty: nothing."""
    notes: list[SubmissionNote] = []
    """The same in parts."""
    trials: int | None = None
    """How many jobs a sweep would make; null: it is none."""
    first_trials: list["PlannedTrial"] = []
    """The first of those jobs."""
    start: "PlannedStart | None" = None
    """Where and when it would start, of a sweep its first trial."""


class PlannedTrial(Resource):
    """One job that a sweep would make."""

    name: str
    """Name of the job."""
    parameters: dict[str, Any]
    """Its values of the sweep's parameters."""


class PlannedStart(Resource):
    """The place and time at which a job would start if it were submitted now."""

    position: int
    """Place in the queue, from 1."""
    reason: str
    """What it would wait for, or that it would start at once."""
    reason_code: str = ""
    """The same as a machine-readable reason."""
    reason_params: dict[str, Any] = {}
    """What `reason` is made of, as in ``GET /jobs/{job_id}/why``."""
    expected_start_at: datetime | None
    """When it would start in half of such cases; null where that cannot be told."""
    expected_start_p90_at: datetime | None
    """When it would start at the latest in nine of ten such cases; null where that cannot be told."""
    devices: list[HeldDevice]
    """Devices that it would then get; none where no start can be told."""
