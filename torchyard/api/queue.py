"""Queue, forecasts and explanations as the REST API shows them."""

from datetime import datetime
from typing import Any, Literal

from torchyard.api.base import Resource
from torchyard.ids import JobId
from torchyard.spec import Priority
from torchyard.states import JobState


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
    jobs: list[JobId] = []
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
    #: Whether the caller may read the job; its name is not shown otherwise.
    readable: bool = True
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
