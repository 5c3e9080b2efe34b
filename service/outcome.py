"""What an attempt's result means for the attempt and its job: pure decisions, no database, no clock."""

import signal
from dataclasses import dataclass

from torchyard import fingerprints
from torchyard.api import JobError
from torchyard.states import STOP_PRECEDENCE, AttemptState, JobState, StopReason
from torchyard.wire import Result, ResultKind

#: A launcher that dies so often before the job's first instruction is broken: more tries would not end.
MAX_LOST_STARTS = 3

_EXIT_ADVICE = {
    signal.SIGKILL: "often the kernel's out-of-memory killer",
    signal.SIGBUS: "often a full /dev/shm: lower num_workers",
    signal.SIGSEGV: "a crash in native code",
}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the decision needs to know of the job."""

    stop: StopReason | None
    retries_used: int
    max_retries: int
    #: Earlier attempts of the job that were lost before their first instruction.
    lost_starts: int = 0
    #: Earlier attempts of the job whose launcher met a port in use.
    port_races: int = 0
    #: Whom it was preempted for, in words.
    yields_to: str = ""

    @property
    def can_retry(self) -> bool:
        """Whether a failure may start the job again."""
        return self.retries_used < self.max_retries


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What becomes of the attempt and the job, and the event that says so."""

    attempt_state: AttemptState
    job_state: JobState
    kind: str
    message: str
    error: JobError | None = None
    spend_retry: bool = False
    preempted: bool = False
    """Its devices go to another."""


def decide(facts: Facts, result: Result) -> Outcome:
    """The one place that says how a job goes on after an attempt's end.

    An exit with 0 wins over any stop, unless the stop caused it (a step in the outcome file, or SIGTERM). Otherwise
    the strongest stop decides, then what went wrong.
    """
    if _finished_by_itself(result):
        return Outcome(
            attempt_state=AttemptState.SUCCEEDED,
            job_state=JobState.SUCCEEDED,
            kind="succeeded",
            message="exited with code 0",
        )
    stop = _strongest(facts.stop, result.stop)
    match stop:
        case StopReason.CANCEL:
            return _cancelled(result)
        case StopReason.TIMEOUT:
            return _timed_out(result)
        case StopReason.PREEMPT | StopReason.DRAIN if _stopped(result):
            return _preempted(facts, stop, result)
    return _failed(facts, result)


def error_of(result: Result) -> JobError:
    """Why an attempt with this result failed."""
    match result.kind:
        case ResultKind.UNUSABLE:
            return JobError(cause="unusable", message=result.message or "the attempt could not be prepared")
        case ResultKind.LOST:
            return JobError(cause="lost", message=result.message or "the launcher died without a result")
    if result.stop is StopReason.TIMEOUT:
        return _with_rank(result, "time-limit", _TIME_LIMIT)
    return _with_rank(result, "exit", result.message or exit_message(result))


def exit_message(result: Result) -> str:
    """How the rank that failed first ended, or the job's process if no rank is known to have failed."""
    rank, code, number = _culprit(result)
    where = f"on node {result.node} " if result.node else ""
    who = f"rank {rank} {where}" if rank is not None else f"the launcher {where}" if where else ""
    if number is not None:
        return f"{who}{'was ' if who else ''}killed by {_signal_name(number)}{_advice(number)}"
    return f"{who}exited with code {code}{_known(result)}"


def _known(result: Result) -> str:
    """What is known of a failure with these last words."""
    advice = _TAKEN if _lost_its_port(result) else fingerprints.advice(result.fingerprint)
    return f": {advice}" if advice else ""


def _lost_its_port(result: Result) -> bool:
    """Whether the launcher itself, not a rank, found the port taken that was chosen for it."""
    return result.fingerprint == fingerprints.ADDRESS_IN_USE and result.failed_rank is None


_TAKEN = "the port that was chosen for its ranks to meet at has been taken by another program meanwhile"
_TIME_LIMIT = "ran into its time limit: give a longer time_limit, or rerun it from its newest checkpoint"


def _finished_by_itself(result: Result) -> bool:
    exited_well = result.kind is ResultKind.EXITED and result.exit_code == 0 and result.signal is None
    return exited_well and result.stopped_at_step is None and not result.terminated


def _strongest(*stops: StopReason | None) -> StopReason | None:
    return max((s for s in stops if s is not None), key=STOP_PRECEDENCE.__getitem__, default=None)


def _stopped(result: Result) -> bool:
    """Whether the stop had reached the job: a crash before that is the job's own."""
    return result.kind is not ResultKind.UNUSABLE and (
        result.kind is ResultKind.LOST or result.stop is not None or result.stopped_at_step is not None
    )


def _ended_as(result: Result, otherwise: AttemptState) -> AttemptState:
    return AttemptState.LOST if result.kind is ResultKind.LOST else otherwise


def _at_step(result: Result) -> str:
    return "" if result.stopped_at_step is None else f" after a checkpoint at step {result.stopped_at_step}"


def _cancelled(result: Result) -> Outcome:
    return Outcome(
        attempt_state=_ended_as(result, AttemptState.CANCELLED),
        job_state=JobState.CANCELLED,
        kind="cancelled",
        message=f"stopped{_at_step(result)}",
    )


def _timed_out(result: Result) -> Outcome:
    return Outcome(
        attempt_state=_ended_as(result, AttemptState.FAILED),
        job_state=JobState.FAILED,
        kind="failed",
        message=f"{_TIME_LIMIT}{_at_step(result)}",
        error=_with_rank(result, "time-limit", _TIME_LIMIT),
    )


def _preempted(facts: Facts, stop: StopReason, result: Result) -> Outcome:
    preempted = stop is StopReason.PREEMPT
    for_whom = f" for {facts.yields_to}" if facts.yields_to else ""
    why = f"preempted{for_whom}" if preempted else "stopped because its node is draining"
    return Outcome(
        attempt_state=_ended_as(result, AttemptState.PREEMPTED),
        job_state=JobState.QUEUED,
        kind="requeued",
        message=f"{why}{_at_step(result)}",
        preempted=preempted,
    )


def _failed(facts: Facts, result: Result) -> Outcome:
    error = error_of(result)
    state = _ended_as(result, AttemptState.FAILED)
    never_ran = result.kind is ResultKind.LOST and result.started_us is None
    if never_ran and facts.lost_starts < MAX_LOST_STARTS:
        return Outcome(
            attempt_state=state,
            job_state=JobState.QUEUED,
            kind="requeued",
            message=f"{error.message}; nothing had run yet, so no retry is spent",
            error=error,
        )
    if _lost_its_port(result) and not facts.port_races:
        return Outcome(
            attempt_state=state,
            job_state=JobState.QUEUED,
            kind="requeued",
            message=f"{error.message}; it starts once more, and no retry is spent",
            error=error,
        )
    if facts.can_retry and result.kind is not ResultKind.UNUSABLE:
        return Outcome(
            attempt_state=state,
            job_state=JobState.QUEUED,
            kind="requeued",
            message=f"{error.message}; retry {facts.retries_used + 1} of {facts.max_retries}",
            error=error,
            spend_retry=True,
        )
    return Outcome(attempt_state=state, job_state=JobState.FAILED, kind="failed", message=error.message, error=error)


def _with_rank(result: Result, cause: str, message: str) -> JobError:
    rank, code, number = _culprit(result)
    return JobError(cause=cause, message=message, rank=rank, exit_code=code, signal=number, traceback=result.traceback)


def _culprit(result: Result) -> tuple[int | None, int | None, int | None]:
    for rank in result.ranks:
        if rank.rank == result.failed_rank:
            return rank.rank, rank.exit_code, rank.signal
    return result.failed_rank, result.exit_code, result.signal


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _advice(number: int) -> str:
    advice = _EXIT_ADVICE.get(number)  # type: ignore[call-overload]
    return f": {advice}" if advice else ""
