"""The scheduler's decisions: start a job, preempt one, cancel a preemption."""

from dataclasses import dataclass
from enum import StrEnum

from service.scheduler.model.nodes import Placement
from torchyard.ids import JobId


class Cause(StrEnum):
    """Reason for which a job is preempted."""

    #: The preemptor is of a higher class, age counted in.
    CLASS = "class"
    #: Its user or project has had more than their share, the preemptor's less.
    SHARE = "share"
    #: Jobs take turns: the preemptor's remaining time is clearly shorter, or nothing of it is known yet.
    TIME_SLICE = "time-slice"
    #: The preemptor has waited for too long, and it is its turn.
    LONGEST_WAIT = "longest-wait"
    #: A reservation or a maintenance begins.
    RESERVATION = "reservation"


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A job starts now, on these slots of each of its nodes."""

    job: JobId
    placements: tuple[Placement, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preempt:
    """A running job writes a checkpoint, is stopped, and goes back to the queue."""

    job: JobId
    #: The job or reservation that gets its devices.
    for_job: str
    reason: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelPreemption:
    """Jobs being preempted for another go on: that job would not start on their devices any more."""

    for_job: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutBack:
    """A job whose trial is over is stopped and goes back to the queue, to start from the beginning."""

    job: JobId
    #: The blocked job for which its devices are held.
    for_job: str


Decision = Start | Preempt | PutBack | CancelPreemption
