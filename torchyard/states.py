"""The states of jobs and attempts, and the only moves between them.

The API, the dashboard and ``docs/architecture.md`` are made from these tables.
"""

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job."""

    #: Waits for its turn (or is held).
    QUEUED = "queued"
    #: Has GPUs; its launch message is on the way to the node.
    ASSIGNED = "assigned"
    #: The node has claimed it and prepares code and environment.
    STARTING = "starting"
    #: Its first instruction has run.
    RUNNING = "running"
    #: Was asked to stop and is saving its work.
    STOPPING = "stopping"
    #: Its node is silent; it may still be running, so it is never started twice.
    UNREACHABLE = "unreachable"
    #: Ended well.
    SUCCEEDED = "succeeded"
    #: Ended badly; `error` says why.
    FAILED = "failed"
    #: Was cancelled by a person.
    CANCELLED = "cancelled"


class AttemptState(StrEnum):
    """The state of one try at running a job."""

    #: Has GPUs; not yet claimed by the node.
    ASSIGNED = "assigned"
    #: Claimed; the node prepares it.
    STARTING = "starting"
    #: Its first instruction has run.
    RUNNING = "running"
    #: Was asked to stop.
    STOPPING = "stopping"
    #: Its node is silent.
    UNREACHABLE = "unreachable"
    #: Exited 0.
    SUCCEEDED = "succeeded"
    #: Exited otherwise, ran out of time, or could not be prepared.
    FAILED = "failed"
    #: Stopped because its job was cancelled.
    CANCELLED = "cancelled"
    #: Stopped to be continued by a later attempt.
    PREEMPTED = "preempted"
    #: Was never claimed; its token no longer counts.
    VOIDED = "voided"
    #: Proven dead without a result.
    LOST = "lost"


class StopReason(StrEnum):
    """Why an attempt is asked to stop."""

    CANCEL = "cancel"
    #: Its time limit.
    TIMEOUT = "timeout"
    #: Makes no step any more.
    HUNG = "hung"
    #: Its GPUs did nothing for as long as its idle limit.
    IDLE = "idle"
    #: Its sweep stopped it early: others do better.
    EARLY = "early"
    #: Its devices go to another job; it goes on later.
    PREEMPT = "preempt"
    #: Its node takes no jobs; it goes on later.
    DRAIN = "drain"


#: A stronger reason replaces a weaker one, never the other way round.
STOP_PRECEDENCE: dict[StopReason, int] = {
    StopReason.CANCEL: 6,
    StopReason.TIMEOUT: 5,
    StopReason.HUNG: 4,
    StopReason.IDLE: 3,
    StopReason.EARLY: 2,
    StopReason.PREEMPT: 1,
    StopReason.DRAIN: 0,
}

_J = JobState
JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    _J.QUEUED: frozenset({_J.ASSIGNED, _J.CANCELLED, _J.FAILED}),
    _J.ASSIGNED: frozenset({_J.STARTING, _J.QUEUED, _J.FAILED, _J.CANCELLED}),
    _J.STARTING: frozenset({_J.RUNNING, _J.SUCCEEDED, _J.STOPPING, _J.FAILED, _J.QUEUED, _J.UNREACHABLE}),
    _J.RUNNING: frozenset({_J.SUCCEEDED, _J.FAILED, _J.QUEUED, _J.STOPPING, _J.UNREACHABLE}),
    _J.STOPPING: frozenset({_J.CANCELLED, _J.FAILED, _J.QUEUED, _J.SUCCEEDED, _J.UNREACHABLE}),
    _J.UNREACHABLE: frozenset({_J.STARTING, _J.RUNNING, _J.STOPPING, _J.SUCCEEDED, _J.FAILED, _J.CANCELLED, _J.QUEUED}),
    _J.SUCCEEDED: frozenset(),
    _J.FAILED: frozenset(),
    _J.CANCELLED: frozenset(),
}

_A = AttemptState
_ENDED = {_A.SUCCEEDED, _A.FAILED, _A.CANCELLED, _A.PREEMPTED, _A.LOST}
ATTEMPT_TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    _A.ASSIGNED: frozenset({_A.STARTING, _A.VOIDED, _A.FAILED, _A.CANCELLED}),
    _A.STARTING: frozenset({_A.RUNNING, _A.STOPPING, _A.UNREACHABLE, *_ENDED}),
    _A.RUNNING: frozenset({_A.STOPPING, _A.UNREACHABLE, *_ENDED}),
    _A.STOPPING: frozenset({_A.UNREACHABLE, *_ENDED}),
    _A.UNREACHABLE: frozenset({_A.STARTING, _A.RUNNING, _A.STOPPING, *_ENDED}),
    **{state: frozenset() for state in (*sorted(_ENDED), _A.VOIDED)},
}

JOB_FINAL: frozenset[JobState] = frozenset(s for s, to in JOB_TRANSITIONS.items() if not to)
ATTEMPT_FINAL: frozenset[AttemptState] = frozenset(s for s, to in ATTEMPT_TRANSITIONS.items() if not to)
#: States in which a job's attempt holds its GPUs.
JOB_HOLDS_GPUS: frozenset[JobState] = frozenset(JobState) - JOB_FINAL - {JobState.QUEUED}
