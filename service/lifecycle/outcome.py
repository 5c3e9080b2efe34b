"""Outcome of an attempt's result for the attempt and its job: pure decisions, no database, no clock."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchyard.api import JobError
from torchyard.failures import fingerprints, recognition
from torchyard.failures.fingerprints import Blame
from torchyard.injob.reasons import CheckpointReason
from torchyard.states import STOP_PRECEDENCE, AttemptState, JobState, StopReason
from torchyard.wire import Clause, Result, ResultKind

#: A launcher that dies so often before the job's first instruction is broken: more tries would not end.
MAX_LOST_STARTS = 3
#: So often in a row a job that makes no progress starts again for what is not its fault, after these pauses (seconds).
PAUSES_S = (0, 30, 120)
MAX_FAULTS = len(PAUSES_S)


@dataclass(frozen=True, kw_only=True)
class AttemptInputs:
    """Inputs of the decision: all it needs to know of the job."""

    stop: StopReason | None
    retries_used: int
    max_retries: int
    #: After its idle limit it waits again.
    requeues_idle: bool = False
    #: Earlier attempts of the job that were lost before their first instruction.
    lost_starts: int = 0
    #: Earlier attempts of the job whose launcher met a port in use.
    port_races: int = 0
    #: Attempts in a row before this one that failed for what is not the job's fault, or were stopped as idle, none of
    #: them and not this one having come further (`lifecycle.faults`).
    faults: int = 0
    #: It began with the files of the attempt before and got nowhere; that one did (`lifecycle.carry.spoiled`).
    spoiled: bool = False
    #: What it was preempted for, as `PendingPreemption.told`.
    preemptor: Mapping[str, Any] = field(default_factory=lambda: {"preemptor": ""})
    #: What was said when its sweep stopped it early, or when it was stopped because it hung.
    asked: str = ""

    @property
    def can_retry(self) -> bool:
        """Tell whether a failure may start the job again."""
        return self.retries_used < self.max_retries


@dataclass(frozen=True, kw_only=True)
class AttemptOutcome:
    """Next states of the attempt and the job, and the event that says so."""

    attempt_state: AttemptState
    job_state: JobState
    kind: str
    message: str
    error: JobError | None = None
    spend_retry: bool = False
    pause_s: int = 0
    """It waits at least this long before it starts again."""
    preempted: bool = False
    """Its devices go to another."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the message is made of."""


def decide(facts: AttemptInputs, result: Result) -> AttemptOutcome:
    """Decide how a job goes on after an attempt's end.

    An exit with 0 wins over any stop, unless the stop caused it (a step in the outcome file, or SIGTERM). Otherwise
    the strongest stop decides, then what went wrong.
    """
    if _finished_by_itself(result):
        return AttemptOutcome(
            attempt_state=AttemptState.SUCCEEDED,
            job_state=JobState.SUCCEEDED,
            kind="succeeded",
            message="exited with code 0",
            data={"exit_code": 0},
        )
    stop = _strongest(facts.stop, result.stop)
    match stop:
        case StopReason.CANCEL | StopReason.EARLY:  # even if it failed meanwhile: nobody wants it to go on
            return _cancelled(result, facts.asked or "stopped")
        case StopReason.TIMEOUT:
            return _gave_up(result, stop)
        case StopReason.IDLE if _stopped(result):
            return _idle(facts, result)
        case StopReason.PREEMPT | StopReason.DRAIN if _stopped(result):
            return _preempted(facts, stop, result)
    return _failed(facts, result)


def error_data(error: JobError) -> dict[str, Any]:
    """Return an error as details of an event; its traceback is the job's."""
    return {"error": error.model_dump(mode="json", exclude={"traceback"}, exclude_none=True)}


def error_of(result: Result) -> JobError:
    """Return the error of an attempt with this result."""
    match result.kind:
        case ResultKind.UNUSABLE:
            return _said("unusable", result.message, "the attempt could not be prepared")
        case ResultKind.LOST:
            return _said(fingerprints.LOST, result.message, "the launcher died without a result")
    if result.stop in _STOPPED:
        return _with_rank(result, *_STOPPED[result.stop], _ADVICE)
    cause, named = cause_of(result) or "exit", {"subject": result.subject}
    if result.message:
        params = {"told": "said", "said": result.message, **named}
        return _with_rank(result, cause, f"{result.message}{_known(result)}", params)
    return _with_rank(result, cause, exit_message(result), {"told": "exit", **_exit_params(result), **named})


def _said(cause: str, said: str | None, otherwise: str) -> JobError:
    params = {"told": "said", "said": said} if said else _ADVICE
    return JobError(cause=cause, message=said or otherwise, params=params)


def _exit_params(result: Result) -> dict[str, Any]:
    _, _, number = _culprit(result)
    name = None if number is None else _signal_name(number).removesuffix(f" (signal {number})")
    own = _own_words(result).removeprefix(": ") if _advice(result) is None else ""
    return {"node": result.node, "signal": name, "own": own, "taken": _lost_its_port(result)}


def cause_of(result: Result) -> str | None:
    """Return the name of the failure (`torchyard.failures.fingerprints`), if it is known.

    A process that was killed has not ended by what it said before, but for an abort: then the C++ runtime has spoken.
    """
    if result.kind is ResultKind.LOST:
        return fingerprints.LOST
    _, _, number = _culprit(result)
    if number is not None and number != signal.SIGABRT:
        return recognition.of_signal(number)
    return result.fingerprint


def exit_message(result: Result) -> str:
    """Say how the rank that failed first ended, or the job's process if no rank is known to have failed."""
    rank, code, number = _culprit(result)
    where = f"on node {result.node} " if result.node else ""
    who = f"rank {rank} {where}" if rank is not None else f"the launcher {where}" if where else ""
    if number is not None:
        return f"{who}{'was ' if who else ''}killed by {_signal_name(number)}{_known(result)}"
    return f"{who}exited with code {code}{_known(result)}"


def _known(result: Result) -> str:
    """Return what is known of such a failure, as the end of a sentence."""
    advice = _advice(result)
    return f": {advice}" if advice else _own_words(result)


def _advice(result: Result) -> str | None:
    return _TAKEN if _lost_its_port(result) else recognition.advice(cause_of(result), result.subject)


def _own_words(result: Result) -> str:
    """Return the last line of the launcher's traceback, where no rank has failed and nothing is known of it."""
    lines = (result.traceback or "").rstrip().splitlines()
    if result.failed_rank is not None or not lines or "Traceback (most recent call last):" not in lines:
        return ""
    return f": {lines[-1][: recognition.MAX_LINE]}"


def _lost_its_port(result: Result) -> bool:
    """Tell whether the launcher itself, not a rank, found the port taken that was chosen for it."""
    return result.fingerprint == fingerprints.ADDRESS_IN_USE and result.failed_rank is None


_TAKEN = "the port that was chosen for its ranks to meet at has been taken by another program meanwhile"
_SPOILED = (
    "it had begun with the files of the attempt before and got nowhere: it starts once more with those that it was "
    "submitted with, and no retry is spent"
)
_TIME_LIMIT = "ran into its time limit: give a longer time_limit, or rerun it from its newest checkpoint"
_IDLE = "its devices did nothing for as long as its idle_limit: see what it waits for, or give a longer idle_limit"
_HUNG = "made no step any more: `yard stacks` shows what its ranks waited for; hang: says when a run counts as hanging"
#: Params of an error whose message is the advice on its cause, and no more.
_ADVICE = {"told": "advice"}
#: Cause and words of a failure by a stop.
_STOPPED = {
    StopReason.TIMEOUT: ("time-limit", _TIME_LIMIT),
    StopReason.IDLE: ("idle", _IDLE),
    StopReason.HUNG: ("hung", _HUNG),
}


def _finished_by_itself(result: Result) -> bool:
    exited_well = result.kind is ResultKind.EXITED and result.exit_code == 0 and result.signal is None
    return exited_well and result.stopped_at_step is None and not result.terminated


def _strongest(*stops: StopReason | None) -> StopReason | None:
    return max((s for s in stops if s is not None), key=STOP_PRECEDENCE.__getitem__, default=None)


def _stopped(result: Result) -> bool:
    """Tell whether the stop had reached the job: a crash before that is the job's own."""
    return result.kind is not ResultKind.UNUSABLE and (
        result.kind is ResultKind.LOST or result.stop is not None or result.stopped_at_step is not None
    )


def _ended_as(result: Result, otherwise: AttemptState) -> AttemptState:
    return AttemptState.LOST if result.kind is ResultKind.LOST else otherwise


def _at_step(result: Result) -> str:
    """Say what was saved at the stop, as far as it is known."""
    if result.stopped_at_step is not None:
        return f" after a checkpoint at step {result.stopped_at_step}"
    lost = _unsaved(result)
    return f"; nothing was saved, because {'; '.join(each.message for each in lost)}" if lost else ""


def _unsaved(result: Result) -> list[Clause]:
    """Return why nothing was saved at the stop, as far as it is known."""
    if result.stopped_at_step is not None:
        return []
    if result.unsaved is not None:
        same = "; ".join(each.message for each in result.unsaved_parts) == result.unsaved
        return result.unsaved_parts if same else [Clause(message=result.unsaved)]
    if result.kind is ResultKind.KILLED and result.started_us is not None and not result.terminated:
        late = CheckpointReason("late")
        return [Clause(message=late, code=late.code)]
    return []


def _saved(result: Result) -> dict[str, Any]:
    """Return what was saved at the stop, as details of an event."""
    lost = [each.model_dump(mode="json") for each in _unsaved(result)]
    return {"saved": result.stopped_at_step, "at_step": _at_step(result), "unsaved": lost}


def _cancelled(result: Result, why: str) -> AttemptOutcome:
    return AttemptOutcome(
        attempt_state=_ended_as(result, AttemptState.CANCELLED),
        job_state=JobState.CANCELLED,
        kind="cancelled",
        message=f"{why}{_at_step(result)}",
        data={"why": why, **_saved(result)},
    )


def _gave_up(result: Result, stop: StopReason) -> AttemptOutcome:
    """Fail for a reason that another try would meet again."""
    cause, message = _STOPPED[stop]
    error = _with_rank(result, cause, message, _ADVICE)
    return AttemptOutcome(
        attempt_state=_ended_as(result, AttemptState.FAILED),
        job_state=JobState.FAILED,
        kind="failed",
        message=f"{message}{_at_step(result)}",
        error=error,
        data={**error_data(error), **_saved(result)},
    )


def _idle(facts: AttemptInputs, result: Result) -> AttemptOutcome:
    if not facts.requeues_idle or facts.faults >= MAX_FAULTS:
        return _gave_up(result, StopReason.IDLE)
    pause_s = PAUSES_S[facts.faults]
    after = f" after {pause_s} s" if pause_s else ""
    error = _with_rank(result, *_STOPPED[StopReason.IDLE], _ADVICE)
    why = f"idle_action: requeue{after}, no retry is spent"
    return _requeued(result, error, why, {"again": "idle"}, pause_s=pause_s)


def _preempted(facts: AttemptInputs, stop: StopReason, result: Result) -> AttemptOutcome:
    preempted = stop is StopReason.PREEMPT
    for_whom = f" for {facts.preemptor['preemptor']}" if facts.preemptor["preemptor"] else ""
    why = f"preempted{for_whom}" if preempted else "stopped because its node is draining"
    return AttemptOutcome(
        attempt_state=_ended_as(result, AttemptState.PREEMPTED),
        job_state=JobState.QUEUED,
        kind="requeued",
        message=f"{why}{_at_step(result)}",
        preempted=preempted,
        data={"stop": stop.value, **facts.preemptor, **_saved(result)},
    )


def _failed(facts: AttemptInputs, result: Result) -> AttemptOutcome:
    error = error_of(result)
    if facts.asked and error.cause == _STOPPED[StopReason.HUNG][0]:
        told = {
            "message": f"{facts.asked}; `yard stacks` shows all of it",
            "params": {"told": "said", "said": facts.asked},
        }
        error = error.model_copy(update=told)
    blame = recognition.blame(error.cause)
    never_ran = result.kind is ResultKind.LOST and result.started_us is None
    if never_ran and facts.lost_starts < MAX_LOST_STARTS:
        return _requeued(result, error, "nothing had run yet, so no retry is spent", {"again": "unstarted"})
    if (
        facts.spoiled
        and blame is not Blame.BOX
        and result.kind is ResultKind.EXITED
        and not (result.stop or facts.stop)
    ):
        return _requeued(result, error, _SPOILED, {"again": "spoiled"})
    if _lost_its_port(result) and not facts.port_races:
        return _requeued(result, error, "it starts once more, and no retry is spent", {"again": "port"})
    if blame is Blame.BOX and not never_ran and facts.faults < MAX_FAULTS:
        pause_s = PAUSES_S[facts.faults]
        after = f" after {pause_s} s" if pause_s else ""
        why = f"not its own fault: try {facts.faults + 1} of {MAX_FAULTS}{after}, no retry is spent"
        data = {"again": "fault", "try": facts.faults + 1, "of": MAX_FAULTS}
        return _requeued(result, error, why, data, pause_s=pause_s)
    if facts.can_retry and blame is not Blame.JOB and result.kind is not ResultKind.UNUSABLE:
        data = {"again": "retry", "try": facts.retries_used + 1, "of": facts.max_retries}
        return _requeued(result, error, f"retry {data['try']} of {data['of']}", data, spend=True)
    spared = "; it would fail the same way again, so max_retries is left alone"
    unspent = facts.can_retry and blame is Blame.JOB
    return AttemptOutcome(
        attempt_state=_ended_as(result, AttemptState.FAILED),
        job_state=JobState.FAILED,
        kind="failed",
        message=f"{error.message}{spared if unspent else ''}",
        error=error,
        data={**error_data(error), "unspent": unspent},
    )


def _requeued(
    result: Result, error: JobError, why: str, data: dict[str, Any], *, spend: bool = False, pause_s: int = 0
) -> AttemptOutcome:
    return AttemptOutcome(
        attempt_state=_ended_as(result, AttemptState.FAILED),
        job_state=JobState.QUEUED,
        kind="requeued",
        message=f"{error.message}; {why}",
        error=error,
        spend_retry=spend,
        pause_s=pause_s,
        data={**data, "pause_s": pause_s},
    )


def _with_rank(result: Result, cause: str, message: str, params: dict[str, Any]) -> JobError:
    rank, code, number = _culprit(result)
    return JobError(
        cause=cause,
        message=message,
        rank=rank,
        exit_code=code,
        signal=number,
        traceback=result.traceback,
        params=params,
    )


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
