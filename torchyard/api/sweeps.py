"""Sweeps as the REST API shows them, and dry runs of submissions."""

from datetime import datetime
from typing import Any, Literal

from torchyard.api.base import Resource
from torchyard.api.jobs import Job
from torchyard.states import JobState


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
