"""What a decision need not look at changes nothing of it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.model.columns import Bools, Ints
from service.scheduler.model.decisions import Cause, Decision, Preempt
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy import decide as deciding
from service.scheduler.policy.decide import decide
from service.scheduler.policy.feasibility import FeasibilityFilter
from service.scheduler.policy.order import PERIOD_US
from tests.unit.service.scheduler.worlds import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    crowds,
    job,
    known,
    node_info,
    policies,
    running,
    state,
    worlds,
)
from torchyard.spec.policy import Policy

#: A turn of the overdue begins.
TURN = (NOW // PERIOD_US + 1) * PERIOD_US


class Unfiltered(FeasibilityFilter):
    """A filter that rules out only what a quota forbids: every other job is looked at."""

    def feasible(self, rows: Ints) -> Bools:
        found: Bools = self.open[self.class_id[rows]]
        return found

    def may_start(self, row: int, class_id: int) -> bool:
        return True

    def may_preempt(self, row: int, class_id: int) -> bool:
        return bool(self._might_preempt[row])

    def may_hold(self, row: int, class_id: int) -> bool:
        return bool(self._ranking.turn[row])


def decided(
    world: SchedulerState,
    now_us: int,
    policy: Policy,
    feasibility: type[FeasibilityFilter],
    together: range = range(0),
) -> list[Decision]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "FeasibilityFilter", feasibility)
        patch.setattr(deciding, "_CHECKED_TOGETHER", together)
        return decide(world, now_us, policy)


@settings(max_examples=500)
@given(st.one_of(crowds(), worlds()), policies, st.sampled_from([NOW, TURN]))
def test_who_is_passed_over_would_have_got_nothing(world: SchedulerState, policy: Policy, now_us: int) -> None:
    everybody = decided(world, now_us, policy, Unfiltered)
    assert decided(world, now_us, policy, FeasibilityFilter) == everybody
    assert decided(world, now_us, policy, FeasibilityFilter, together=range(1, 1_000)) == everybody


def test_an_earlier_job_that_stops_nobody_does_not_keep_a_shorter_one_of_a_lower_class_from_it() -> None:
    victim = running(1, "a0", priority=0, preemptible=True, remaining=known(110 * HOUR), eligible_us=NOW)
    first = job(2, priority=2, remaining=known(100 * HOUR), ran_us=HOUR)
    second = job(3, priority=0, remaining=known(HOUR), ran_us=HOUR)
    found = decide(state(node_info(gpus=1), victim, first, second), NOW, Policy(preemption=False))
    assert found == [Preempt(job="r1", for_job="j3", reason=Cause.TIME_SLICE)]


def test_a_new_job_that_stops_nobody_does_not_take_the_turn_of_an_overdue_one() -> None:
    victim = running(1, "a0", priority=1, preemptible=True, remaining=known(20 * MINUTE), since_us=TURN - HOUR)
    tried_first = job(2, priority=1, eligible_us=TURN)
    overdue = job(3, priority=1, eligible_us=TURN - 4 * DAY, remaining=known(HOUR), ran_us=HOUR)
    world = state(node_info(gpus=1), replace(victim, starts_over=True), tried_first, overdue)
    assert decide(world, TURN, Policy()) == [Preempt(job="r1", for_job="j3", reason=Cause.LONGEST_WAIT)]
