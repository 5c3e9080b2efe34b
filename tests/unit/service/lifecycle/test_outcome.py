"""Every end of an attempt, and what it means for the job."""

from itertools import product
from typing import Any

import pytest

from service.lifecycle.outcome import (
    MAX_FAULTS,
    MAX_LOST_STARTS,
    AttemptInputs,
    cause_of,
    decide,
    error_of,
    exit_message,
)
from torchyard.api.jobs import FailureCause
from torchyard.failures import recognition
from torchyard.failures.fingerprints import FINGERPRINTS
from torchyard.states import ATTEMPT_TRANSITIONS, JOB_TRANSITIONS, AttemptState, JobState, StopReason
from torchyard.wire import Clause, RankExit, Result, ResultKind

FACTS = AttemptInputs(stop=None, retries_used=0, max_retries=0)


def facts(**changes: Any) -> AttemptInputs:
    return AttemptInputs(**({"stop": None, "retries_used": 0, "max_retries": 0} | changes))


def result(**fields: Any) -> Result:
    return Result(**({"kind": ResultKind.EXITED, "started_us": 1, "ended_us": 2} | fields))


CLEAN = result(exit_code=0)
STOPPED = result(exit_code=0, stopped_at_step=40)
KILLED = result(kind=ResultKind.KILLED, signal=9)
LOST = result(kind=ResultKind.LOST)
NEVER_RAN = result(kind=ResultKind.LOST, started_us=None)
UNUSABLE = result(kind=ResultKind.UNUSABLE, message="python: /opt/envs/x has no torch", started_us=None)
CRASH = result(exit_code=1)
NO_MODULE = result(exit_code=1, failed_rank=0, fingerprint="missing-module", subject="apex")
GPU_FAULT = result(exit_code=1, failed_rank=0, fingerprint="gpu-fault")
KILLER = recognition.advice("killed")


@pytest.mark.parametrize("stop", [None, *StopReason])
def test_a_job_that_finished_first_succeeded_whatever_was_asked(stop: StopReason | None) -> None:
    decision = decide(facts(stop=stop), CLEAN)
    assert (decision.attempt_state, decision.job_state) == (AttemptState.SUCCEEDED, JobState.SUCCEEDED)


@pytest.mark.parametrize("ended", [STOPPED, KILLED, CRASH, UNUSABLE, result(exit_code=0, terminated=True)])
def test_cancelled(ended: Result) -> None:
    decision = decide(facts(stop=StopReason.CANCEL, max_retries=5), ended)
    assert (decision.attempt_state, decision.job_state) == (AttemptState.CANCELLED, JobState.CANCELLED)
    assert not decision.spend_retry


@pytest.mark.parametrize("reason", [StopReason.PREEMPT, StopReason.DRAIN])
@pytest.mark.parametrize("ended", [STOPPED, KILLED, CRASH, result(exit_code=0, terminated=True)])
def test_preempted_and_drained_jobs_wait_again(reason: StopReason, ended: Result) -> None:
    decision = decide(facts(stop=reason), ended.model_copy(update={"stop": reason}))
    assert (decision.attempt_state, decision.job_state) == (AttemptState.PREEMPTED, JobState.QUEUED)
    assert not decision.spend_retry


def test_a_crash_before_the_preemption_reached_it_is_the_jobs_own() -> None:
    assert decide(facts(stop=StopReason.PREEMPT), CRASH).job_state is JobState.FAILED


@pytest.mark.parametrize("asked", [None, StopReason.PREEMPT, StopReason.DRAIN])
def test_the_time_limit_beats_preemption(asked: StopReason | None) -> None:
    decision = decide(facts(stop=asked, max_retries=3), STOPPED.model_copy(update={"stop": StopReason.TIMEOUT}))
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert decision.error.cause == "time-limit"
    assert "after a checkpoint at step 40" in decision.message


@pytest.mark.parametrize("stop", [StopReason.CANCEL, StopReason.TIMEOUT, StopReason.PREEMPT, StopReason.DRAIN])
def test_a_stop_says_why_nothing_was_saved(stop: StopReason) -> None:
    ended = result(exit_code=1, stop=stop, unsaved="no space left on device")
    assert decide(facts(stop=stop), ended).message.endswith("; nothing was saved, because no space left on device")
    late = result(kind=ResultKind.KILLED, signal=9, stop=stop)
    in_vain = decide(facts(stop=stop), late)
    assert in_vain.message.endswith("because no checkpoint was ready within its grace")
    assert [each["code"] for each in in_vain.data["unsaved"]] == ["late"]
    part = Clause(message="no space left on device", code="empty")
    assert decide(facts(stop=stop), ended.model_copy(update={"unsaved_parts": [part]})).data["unsaved"] == [
        part.model_dump()
    ]
    other = [Clause(message="other words", code="empty")]  # a job may leave there what it likes
    own = decide(facts(stop=stop), ended.model_copy(update={"unsaved_parts": other})).data["unsaved"]
    assert own == [{"message": "no space left on device", "code": None, "params": {}}]
    mute = result(kind=ResultKind.KILLED, signal=9, stop=stop, terminated=True)
    assert "saved" not in decide(facts(stop=stop), mute).message


def test_cancel_beats_the_time_limit() -> None:
    ended = KILLED.model_copy(update={"stop": StopReason.TIMEOUT})
    assert decide(facts(stop=StopReason.CANCEL), ended).job_state is JobState.CANCELLED


def test_what_cannot_be_prepared_is_not_tried_again() -> None:
    decision = decide(facts(max_retries=3), UNUSABLE)
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert (decision.error.cause, decision.error.message) == ("unusable", "python: /opt/envs/x has no torch")


def test_lost_before_the_first_instruction_costs_nothing_but_not_for_ever() -> None:
    for lost_starts in range(MAX_LOST_STARTS):
        decision = decide(facts(lost_starts=lost_starts), NEVER_RAN)
        assert (decision.attempt_state, decision.job_state) == (AttemptState.LOST, JobState.QUEUED)
        assert not decision.spend_retry
    assert decide(facts(lost_starts=MAX_LOST_STARTS), NEVER_RAN).job_state is JobState.FAILED


def test_a_port_that_the_launcher_lost_costs_nothing_once() -> None:
    taken = result(exit_code=1, fingerprint="address-in-use")
    again = decide(FACTS, taken)
    assert (again.job_state, again.spend_retry) == (JobState.QUEUED, False)
    assert "has been taken by another program meanwhile; it starts once more" in again.message
    assert decide(facts(port_races=1), taken).job_state is JobState.FAILED


def test_a_port_that_the_script_fixed_fails_with_the_mend() -> None:
    taken = result(exit_code=1, fingerprint="address-in-use", failed_rank=0)
    decision = decide(FACTS, taken)
    assert decision.job_state is JobState.FAILED
    assert "rank 0 exited with code 1: the port that it listens at is in use" in decision.message
    assert "take MASTER_PORT from the environment" in decision.message


@pytest.mark.parametrize(("ended", "cause"), [(CRASH, "exit"), (KILLED, "killed")])
def test_failures_are_retried_as_often_as_allowed(ended: Result, cause: str) -> None:
    retried = decide(facts(retries_used=1, max_retries=2), ended)
    assert (retried.job_state, retried.spend_retry) == (JobState.QUEUED, True)
    assert retried.message.endswith("retry 2 of 2")
    failed = decide(facts(retries_used=2, max_retries=2), ended)
    assert (failed.job_state, failed.spend_retry) == (JobState.FAILED, False)
    assert failed.error is not None
    assert failed.error.cause == cause


@pytest.mark.parametrize(("ended", "cause"), [(LOST, "lost"), (GPU_FAULT, "gpu-fault")])
def test_what_is_the_boxs_fault_is_tried_again_without_a_retry_but_not_for_ever(ended: Result, cause: str) -> None:
    for faults in range(MAX_FAULTS):
        decision = decide(facts(faults=faults, max_retries=1), ended)
        assert (decision.job_state, decision.spend_retry) == (JobState.QUEUED, False)
        after = ("", " after 30 s", " after 120 s")[faults]
        assert decision.message.endswith(f"not its own fault: try {faults + 1} of 3{after}, no retry is spent")
        assert decision.pause_s == (0, 30, 120)[faults]
        assert decision.error is not None
        assert decision.error.cause == cause
    assert decide(facts(faults=MAX_FAULTS, max_retries=1), ended).spend_retry
    assert decide(facts(faults=MAX_FAULTS), ended).job_state is JobState.FAILED


def test_what_would_fail_the_same_way_again_is_not_tried_again() -> None:
    decision = decide(facts(max_retries=3), NO_MODULE)
    assert (decision.job_state, decision.spend_retry) == (JobState.FAILED, False)
    assert "the module apex is not in the job's environment" in decision.message
    assert "python:" in decision.message
    assert decision.message.endswith("it would fail the same way again, so max_retries is left alone")
    assert decision.error is not None
    assert decision.error.cause == "missing-module"
    assert "max_retries" not in decide(facts(), NO_MODULE).message


def test_a_job_that_used_more_memory_than_it_may_is_not_started_again() -> None:
    words = "used more than its memory of 1.0 GiB"
    decision = decide(facts(max_retries=2), result(kind=ResultKind.KILLED, fingerprint="memory-limit", message=words))
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert (decision.error.cause, decision.error.message.partition(": ask for more (resources.memory)")[0]) == (
        "memory-limit",
        words,
    )


def test_an_import_error_is_told_with_its_own_words() -> None:
    own = {"fingerprint": "import-error", "subject": "pip install apex {first}"}
    decision = decide(facts(max_retries=3), NO_MODULE.model_copy(update=own))
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert decision.error.cause == "import-error"
    assert decision.error.message.startswith(
        "rank 0 exited with code 1: a module cannot be imported (pip install apex {first}): the environment that"
    )


def test_what_was_said_before_a_kill_is_not_its_cause() -> None:
    shouted = {"fingerprint": "missing-file", "exit_code": 1, "failed_rank": 0}
    for number, cause in ((9, "killed"), (15, None), (6, "missing-file")):
        ended = result(**shouted, ranks=[RankExit(rank=0, signal=number, ended_us=1)])
        assert cause_of(ended) == cause


def test_a_run_that_hangs_may_be_tried_again() -> None:
    hung = KILLED.model_copy(update={"stop": StopReason.HUNG})
    decision = decide(facts(stop=StopReason.HUNG, max_retries=1), hung)
    assert (decision.job_state, decision.spend_retry) == (JobState.QUEUED, True)
    failed = decide(facts(stop=StopReason.HUNG), hung)
    assert failed.job_state is JobState.FAILED
    assert failed.error is not None
    assert failed.error.cause == "hung"
    assert "`yard stacks`" in failed.message
    told = decide(facts(stop=StopReason.HUNG, asked="rank 1 waits in all_reduce"), hung).error
    assert told is not None
    assert told.message.startswith("rank 1 waits in all_reduce; ")


@pytest.mark.parametrize("ended", [STOPPED, KILLED])
def test_an_idle_run_fails_and_is_not_tried_again(ended: Result) -> None:
    decision = decide(facts(stop=StopReason.IDLE, max_retries=1), ended.model_copy(update={"stop": StopReason.IDLE}))
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert decision.error.cause == "idle"
    assert "idle_limit" in decision.message


def test_an_idle_run_that_says_so_waits_again_at_no_cost_but_not_for_ever() -> None:
    ended = STOPPED.model_copy(update={"stop": StopReason.IDLE})
    says = {"stop": StopReason.IDLE, "requeues_idle": True, "max_retries": 0}
    for faults, pause_s in enumerate((0, 30, 120)):
        decision = decide(facts(**says, faults=faults), ended)
        assert (decision.job_state, decision.spend_retry, decision.pause_s) == (JobState.QUEUED, False, pause_s)
    assert "idle_action: requeue after 120 s, no retry is spent" in decision.message
    assert decide(facts(**says, faults=MAX_FAULTS), ended).job_state is JobState.FAILED


@pytest.mark.parametrize("reason", [StopReason.PREEMPT, StopReason.DRAIN])
def test_lost_while_being_preempted_waits_again(reason: StopReason) -> None:
    decision = decide(facts(stop=reason), LOST)
    assert (decision.attempt_state, decision.job_state) == (AttemptState.LOST, JobState.QUEUED)


def test_the_failing_rank_speaks() -> None:
    ended = result(
        exit_code=1,
        failed_rank=1,
        traceback="Traceback …\nValueError: boom",
        ranks=[RankExit(rank=0, signal=15, ended_us=9), RankExit(rank=1, exit_code=3, ended_us=8)],
    )
    error = decide(FACTS, ended).error
    assert error is not None
    assert (error.rank, error.exit_code, error.signal) == (1, 3, None)
    assert error.message == "rank 1 exited with code 3"
    assert error.traceback == ended.traceback


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"exit_code": 2}, "exited with code 2"),
        ({"signal": 9}, f"killed by SIGKILL (signal 9): {KILLER}"),
        ({"signal": 15}, "killed by SIGTERM (signal 15)"),
        ({"signal": 99}, "killed by signal 99"),
        (
            {"failed_rank": 1, "ranks": [RankExit(rank=1, signal=9, ended_us=1)], "exit_code": 1},
            f"rank 1 was killed by SIGKILL (signal 9): {KILLER}",
        ),
    ],
)
def test_words_for_exits(fields: dict[str, Any], message: str) -> None:
    assert exit_message(result(**fields)) == message


@pytest.mark.parametrize("stop", [None, *StopReason])
@pytest.mark.parametrize("kind", list(ResultKind))
def test_every_decision_is_a_move_of_the_table(kind: ResultKind, stop: StopReason | None) -> None:
    for case in product([None, *StopReason], [0, 1, None], [0, 2]):
        seen, code, retries = case
        decision = decide(facts(stop=stop, max_retries=retries), result(kind=kind, exit_code=code, stop=seen))
        for attempt in (AttemptState.STARTING, AttemptState.RUNNING, AttemptState.STOPPING, AttemptState.UNREACHABLE):
            assert decision.attempt_state in ATTEMPT_TRANSITIONS[attempt], case
        job = JobState.STOPPING if stop else JobState.RUNNING
        if decision.job_state is JobState.CANCELLED:
            assert {StopReason.CANCEL, StopReason.EARLY} & {stop, seen}, case
            job = JobState.STOPPING
        assert decision.job_state in JOB_TRANSITIONS[job], case
        failed = decision.job_state is JobState.FAILED
        assert (decision.error is not None) == failed or decision.kind == "requeued", case


def test_a_trial_that_is_stopped_early_is_cancelled_with_the_reason_and_never_tried_again() -> None:
    why = facts(stop=StopReason.EARLY, asked="stopped early at step 9: worse than the others", max_retries=2)
    for end in (result(exit_code=0, stopped_at_step=9), result(exit_code=1)):
        decision = decide(why, end)
        assert (decision.job_state, decision.error) == (JobState.CANCELLED, None)
        assert decision.message.startswith("stopped early at step 9: worse than the others")
    assert decide(why, result(exit_code=0)).job_state is JobState.SUCCEEDED


def test_what_was_seen_from_outside_is_told_with_its_mend_and_not_tried_again() -> None:
    seen = result(kind=ResultKind.KILLED, fingerprint="own-processes", message="none of its ranks has met another")
    decision = decide(facts(max_retries=3), seen)
    assert decision.job_state is JobState.FAILED
    assert decision.error is not None
    assert decision.error.cause == "own-processes"
    assert decision.error.message.startswith("none of its ranks has met another: the script starts processes itself")


def test_the_launchers_own_error_is_the_headline_where_no_rank_has_failed() -> None:
    words = "Traceback (most recent call last):\n  File x\ntorch.distributed.DistNetworkError: the port is 0"
    assert exit_message(result(exit_code=1, traceback=words)) == (
        "exited with code 1: torch.distributed.DistNetworkError: the port is 0"
    )
    assert exit_message(result(exit_code=1, failed_rank=0, traceback=words)) == "rank 0 exited with code 1"


def test_an_attempt_that_its_predecessors_files_may_have_ended_starts_once_more() -> None:
    failed = Result(kind=ResultKind.EXITED, exit_code=1, ended_us=1)
    found = decide(facts(spoiled=True), failed)
    assert (found.job_state, found.spend_retry) == (JobState.QUEUED, False)
    assert "those that it was submitted with, and no retry is spent" in found.message
    assert decide(facts(), failed).job_state is JobState.FAILED
    hung = failed.model_copy(update={"stop": StopReason.HUNG})
    assert decide(facts(spoiled=True), hung).job_state is JobState.FAILED


@pytest.mark.parametrize(
    ("ended", "params"),
    [
        (NO_MODULE, {"told": "exit", "subject": "apex", "signal": None, "node": None, "own": "", "taken": False}),
        (KILLED, {"told": "exit", "subject": None, "signal": "SIGKILL", "node": None, "own": "", "taken": False}),
        (UNUSABLE, {"told": "said", "said": "python: /opt/envs/x has no torch"}),
        (result(kind=ResultKind.LOST, started_us=1), {"told": "advice"}),
        (result(kind=ResultKind.KILLED, stop=StopReason.TIMEOUT), {"told": "advice"}),
    ],
)
def test_a_failure_says_what_its_message_is_made_of(ended: Result, params: dict[str, Any]) -> None:
    assert error_of(ended).params == params


def test_the_event_of_a_failure_says_what_is_known_of_it_and_what_comes_next() -> None:
    failed = decide(facts(max_retries=2), NO_MODULE)
    assert (failed.data["error"]["cause"], failed.data["unspent"]) == ("missing-module", True)
    assert "traceback" not in failed.data["error"]
    again = decide(facts(max_retries=2), CRASH)
    assert again.data == {"again": "retry", "try": 1, "of": 2, "pause_s": 0}


def test_every_failure_that_is_recognised_is_a_cause_of_the_api() -> None:
    assert {each.name for each in FINGERPRINTS} <= set(FailureCause)
