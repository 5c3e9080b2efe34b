"""What the results of several nodes say together."""

from itertools import permutations
from typing import Any

import pytest

from service.lifecycle import gang_result, outcome
from torchyard.failures import fingerprints
from torchyard.states import JobState, StopReason
from torchyard.wire import RankExit, Result, ResultKind

FACTS = outcome.AttemptInputs(stop=None, retries_used=0, max_retries=0)
SECOND = 1_000_000


def result(**fields: Any) -> Result:
    defaults: dict[str, Any] = {"kind": ResultKind.EXITED, "started_us": 1, "ended_us": 10 * SECOND}
    return Result(**(defaults | fields))


def part(node: str, ended: Result, learnt_s: float = 20, *, sentenced: bool = False) -> gang_result.MemberResult:
    return gang_result.MemberResult(node=node, result=ended, learnt_us=round(learnt_s * SECOND), sentenced=sentenced)


def exits(*ends: tuple[int, int | None, int | None, float]) -> list[RankExit]:
    return [RankExit(rank=r, exit_code=c, signal=s, ended_us=round(at * SECOND)) for r, c, s, at in ends]


CLEAN = result(exit_code=0)
#: Rank 3 was killed at 5 s; its peers on the other node lost their connections and raised soon after.
KILLED = result(exit_code=1, failed_rank=3, ranks=exits((2, None, 15, 5.4), (3, None, 9, 5.0)))
RAISED = result(exit_code=1, failed_rank=0, ranks=exits((0, 1, None, 5.3), (1, 1, None, 5.31)), traceback="reset")


def decided(*parts: gang_result.MemberResult) -> outcome.AttemptOutcome:
    return outcome.decide(FACTS, gang_result.merge(parts))


def test_all_must_succeed() -> None:
    assert decided(part("a", CLEAN), part("b", CLEAN)).job_state is JobState.SUCCEEDED
    assert decided(part("a", CLEAN), part("b", result(exit_code=3))).job_state is JobState.FAILED
    assert gang_result.failed(result(exit_code=None, signal=9))
    assert gang_result.failed(result(kind=ResultKind.LOST, exit_code=0))
    assert not gang_result.failed(CLEAN)


def test_the_peak_of_memory_is_that_of_the_node_that_held_the_most() -> None:
    peaks = (5, None, 7)
    parts = [
        part(str(number), result(exit_code=0, memory_peak=peak, gpu_memory_peak=peak))
        for number, peak in enumerate(peaks)
    ]
    assert (gang_result.merge(parts).memory_peak, gang_result.merge(parts).gpu_memory_peak) == (7, 7)
    assert gang_result.merge([part("a", CLEAN)]).memory_peak is None


@pytest.mark.parametrize("sentenced", ["a", "b"])
def test_the_rank_that_failed_first_is_named_whoever_told_first(sentenced: str) -> None:
    parts = [part(node, ended, sentenced=node == sentenced) for node, ended in (("a", RAISED), ("b", KILLED))]
    for order in permutations(parts):
        merged = gang_result.merge(order)
        assert (merged.node, merged.failed_rank, merged.traceback) == ("b", 3, None)
        assert [one.rank for one in merged.ranks] == [0, 1, 2, 3]
    error = decided(*parts).error
    assert error is not None
    assert error.message.startswith("rank 3 on node b was killed by SIGKILL (signal 9)")


def test_clocks_that_differ_are_set_right() -> None:
    """Node b's clock is an hour ahead: it says that rank 3 was killed long after the others had raised."""
    hour = 3600 * SECOND
    late = KILLED.model_copy(
        update={
            "ranks": [one.model_copy(update={"ended_us": one.ended_us + hour}) for one in KILLED.ranks],
            "ended_us": KILLED.ended_us + hour,
            "sent_us": 6 * SECOND + hour,
        }
    )
    told = RAISED.model_copy(update={"sent_us": 6 * SECOND})
    merged = gang_result.merge([part("a", told, 6), part("b", late, 6)])
    assert (merged.failed_rank, merged.ended_us) == (3, 10 * SECOND)


@pytest.mark.parametrize("late_s", [0.0, 2.0])
def test_what_failed_for_want_of_its_peers_comes_after_what_did_not_however_late_that_is_told(late_s: float) -> None:
    """A message that took long is the same to the service as a clock that is behind."""
    missed = RAISED.model_copy(update={"sent_us": 6 * SECOND, "fingerprint": fingerprints.LOST_RANK})
    killed = KILLED.model_copy(update={"sent_us": 6 * SECOND})
    merged = gang_result.merge([part("a", missed, 6), part("b", killed, 6 + late_s)])
    assert (merged.node, merged.failed_rank) == ("b", 3)


def test_a_clean_stop_is_one_although_only_the_first_node_wrote_its_step() -> None:
    stopped = {"stop": StopReason.CANCEL, "exit_code": 0}
    parts = [part("a", result(**stopped, stopped_at_step=40)), part("b", result(**stopped))]
    decision = outcome.decide(
        outcome.AttemptInputs(stop=StopReason.CANCEL, retries_used=0, max_retries=0), gang_result.merge(parts)
    )
    assert decision.job_state is JobState.CANCELLED
    assert decision.message == "stopped after a checkpoint at step 40"


def test_a_part_that_was_told_to_end_is_no_cancel() -> None:
    killed = result(kind=ResultKind.KILLED, signal=9, stop=StopReason.CANCEL)
    merged = gang_result.merge([part("a", killed, sentenced=True), part("b", result(exit_code=7))])
    assert (merged.stop, merged.exit_code, merged.node) == (None, 7, "b")
    assert outcome.exit_message(merged) == "the launcher on node b exited with code 7"


def test_what_could_not_start_and_what_was_lost_go_before_what_failed_for_want_of_it() -> None:
    unusable = result(kind=ResultKind.UNUSABLE, message="python: /opt/x has no torch", started_us=None)
    merged = gang_result.merge([part("a", RAISED), part("b", unusable)])
    assert (merged.kind, merged.message) == (ResultKind.UNUSABLE, "node b: python: /opt/x has no torch")
    lost = result(kind=ResultKind.LOST, message="its node was booted again")
    merged = gang_result.merge([part("a", RAISED), part("b", lost)])
    assert (merged.kind, merged.message) == (ResultKind.LOST, "node b: its node was booted again")
    assert merged.started_us == 1


def test_no_retry_is_spent_when_a_part_never_ran() -> None:
    lost = result(kind=ResultKind.LOST, message="interrupted", started_us=None)
    killed = result(kind=ResultKind.KILLED, signal=9, stop=StopReason.CANCEL)
    decision = decided(part("a", killed, sentenced=True), part("b", lost))
    assert decision.job_state is JobState.QUEUED
    assert "no retry is spent" in decision.message
