"""When victims are stopped, and when they keep their devices."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.db.records.attempts import PendingPreemption
from service.preemption.handshake import HandshakeVerdict, NoUse, PreemptionVictim, judge
from torchyard.states import StopReason

DEADLINE = 300_000_000
HOUR = 3_600_000_000


def victim(job: str = "job-1", **changes: Any) -> PreemptionVictim:
    values: dict[str, Any] = {"saved_step": 20, "runs": True}
    asked = PendingPreemption(
        preemptor="job-9",
        words="job 9 (ana), urgent",
        params={"number": 9},
        asked_us=0,
        deadline_us=DEADLINE,
        serial=1,
        after=10,
    )
    return PreemptionVictim(job=job, attempt=f"att-{job}", pending=changes.pop("asked", asked), **(values | changes))


def asked_again(each: PreemptionVictim, **changes: Any) -> PreemptionVictim:
    return victim(each.job, asked=each.pending.model_copy(update=changes), saved_step=each.saved_step)


def test_a_verified_checkpoint_after_the_order_stops_the_job() -> None:
    assert judge([ready := victim()], 0) == HandshakeVerdict(stop=(ready,))


def test_an_older_checkpoint_does_not_count() -> None:
    for step in (None, 5, 10):
        assert judge([victim(saved_step=step)], DEADLINE - 1) == HandshakeVerdict()


def test_without_an_order_nothing_is_waited_for() -> None:
    job = asked_again(victim(saved_step=None), serial=None)
    assert judge([job], 0).stop == (job,)


def test_none_is_stopped_before_all_can_be() -> None:
    jobs = [victim("job-1"), victim("job-2", saved_step=None)]
    assert judge(jobs, 0) == HandshakeVerdict()


def test_one_that_is_late_lets_all_keep_their_devices() -> None:
    ready, late = victim("job-1"), victim("job-2", saved_step=None)
    verdict = judge([ready, late], DEADLINE)
    assert verdict == HandshakeVerdict(keep=(ready, late), late=frozenset({"job-2"}))
    assert "another job" in verdict.told_to(ready)
    assert "within 300 s" in verdict.told_to(late)
    assert verdict.data_for(late) == {
        "preemptor": "job 9 (ana), urgent",
        "preemptor_params": {"number": 9},
        "leaves": False,
        "why": None,
        "allowed_s": 300,
    }
    told = {"numbers": [1, 2], "late": [2], "why": None, "allowed_s": 300, "spared_s": 600}
    assert verdict.data({"job-1": 1, "job-2": 2}, 600) == told


def test_one_is_late_where_the_clock_was_set_back_beyond_the_order() -> None:
    assert judge([victim(saved_step=None)], -HOUR).late == {"job-1"}
    assert not judge([victim(saved_step=None)], -1).late, "two services' clocks differ a little"


def test_nobody_gives_way_to_a_job_that_no_longer_waits() -> None:
    job = victim()
    verdict = judge([job], 0, why=NoUse.GONE)
    assert verdict == HandshakeVerdict(keep=(job,), why=NoUse.GONE)
    assert verdict.told_to(job) == "keeps its devices: job 9 (ana), urgent, no longer waits"


def test_one_that_is_stopped_for_another_reason_gives_way_to_nobody_then() -> None:
    drained = victim(stop=StopReason.DRAIN)
    assert judge([drained, victim("job-2", stop=StopReason.PREEMPT)], 0) == HandshakeVerdict()
    verdict = judge([drained, victim("job-2", stop=StopReason.PREEMPT)], 0, why=NoUse.MOVED)
    assert verdict.keep == (drained,)
    assert verdict.told_to(drained) == "is preempted for nobody: job 9 (ana), urgent, would not start there any more"
    told = "job 1 is no longer to be preempted for it: it would not start there any more"
    assert verdict.told({"job-1": 1}, 600) == told


def test_a_job_that_nobody_sees_is_not_stopped() -> None:
    assert judge([victim(runs=False)], DEADLINE - 1) == HandshakeVerdict()
    assert judge([victim(runs=False)], DEADLINE).late == {"job-1"}


YIELDERS = st.lists(
    st.builds(
        victim,
        st.from_regex(r"job-[1-9]", fullmatch=True),
        saved_step=st.none() | st.integers(0, 20),
        runs=st.booleans(),
        stop=st.none() | st.sampled_from(StopReason),
    ),
    min_size=1,
)


@given(group=YIELDERS, now=st.integers(0, 2 * DEADLINE), wanted=st.booleans())
def test_what_is_stopped_is_wanted_saved_and_complete(group: list[PreemptionVictim], now: int, wanted: bool) -> None:
    verdict = judge(group, now, why=None if wanted else NoUse.GONE)
    assert not (verdict.stop and verdict.keep)
    assert all(each.stop is None for each in verdict.stop)
    assert not any(each.stop is StopReason.PREEMPT for each in verdict.keep)
    if verdict.stop:
        assert wanted
        assert all(each.ready or each.stop for each in group)
