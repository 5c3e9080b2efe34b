"""Jobs that cannot be stopped: tried for a time slice, and then they go on or are put back."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.model.decisions import PutBack, Start
from service.scheduler.model.jobs import Estimate, Running
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from tests.unit.service.scheduler.worlds import (
    GIB,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    carry_out,
    crowds,
    job,
    known,
    node_info,
    put_back,
    running,
    settle,
    starts,
    state,
    stops,
    worlds,
)
from torchyard.spec.policy import Order, Policy


def told(us: float) -> Estimate:
    return replace(known(us), as_of_us=NOW)


def tried(number: int, uuids: str, lasts_us: float, **fields: object) -> Running:
    """A job whose trial ends now, and whose steps have told how long it will still take."""
    defaults = {
        "restartable": True, "starts_over": True, "since_us": NOW - MINUTE, "trial_ends_us": NOW,
        "remaining": told(lasts_us), "eligible_us": NOW - MINUTE,
    }  # fmt: skip
    return running(number, uuids, **(defaults | fields))


LONG = tried(1, "a0", 9 * HOUR)
SHORT = job(2, remaining=known(10 * MINUTE), ran_us=MINUTE)


def test_after_its_trial_a_long_job_makes_room_for_a_short_one_and_a_short_one_goes_on() -> None:
    assert stops(decide(state(node_info(gpus=1), LONG, SHORT), NOW, Policy())) == {"r1": "j2"}
    assert decide(state(node_info(gpus=1), tried(1, "a0", 5 * MINUTE), SHORT), NOW, Policy()) == []


@pytest.mark.parametrize(
    ("changed", "policy"),
    [
        ({"trial_ends_us": NOW - 1}, Policy()),
        ({"restartable": False}, Policy()),
        ({"since_us": NOW - 59 * SECOND}, Policy()),
        ({"stops": True, "preempted_for": "j9"}, Policy()),
        ({}, Policy(restarts=0)),
        ({}, Policy(time_slice=None)),
        ({}, Policy(order=Order.SRTF)),
    ],
)
def test_nobody_is_put_back_later_or_more_often_or_where_that_is_off(
    changed: dict[str, object], policy: Policy
) -> None:
    assert decide(state(node_info(gpus=1), replace(LONG, **changed), SHORT), NOW, policy) == []


def test_who_has_made_no_step_yet_is_still_on_trial_however_long_that_takes() -> None:
    starting = replace(LONG, remaining=None, since_us=NOW - 4 * MINUTE, begun_us=NOW + MINUTE, trial_ends_us=NOW + HOUR)
    new = job(4, restartable=True)
    assert decide(state(node_info(gpus=1), starting, new), NOW, Policy()) == []
    silent = replace(starting, begun_us=NOW - 2 * MINUTE)
    assert stops(decide(state(node_info(gpus=1), silent, new), NOW, Policy())) == {"r1": "j4"}


def test_it_is_not_put_back_where_the_other_would_not_start() -> None:
    two = replace(SHORT, resources=job(2, 2).resources)
    assert decide(state(node_info(gpus=2), LONG, running(3, "a1"), two), NOW, Policy()) == []


def test_it_is_put_back_where_its_devices_are_kept_and_it_would_not_be_gone_in_time() -> None:
    """The other device is free in an hour: then two of them are wanted for a short job."""
    two = job(2, 2, remaining=known(10 * MINUTE), ran_us=MINUTE)
    holder = running(3, "a1", remaining=told(HOUR))
    world = state(node_info(gpus=2), LONG, holder, two)
    assert decide(world, NOW, Policy()) == [PutBack(job="r1", for_job="j2")]
    in_time = state(node_info(gpus=2), tried(1, "a0", 50 * MINUTE), holder, two)
    assert decide(in_time, NOW, Policy()) == []
    behind = replace(two, remaining=known(90 * HOUR))
    assert decide(state(node_info(gpus=2), LONG, holder, behind), NOW, Policy()) == []


def test_it_is_not_put_back_for_a_job_that_needs_nothing_of_what_it_holds() -> None:
    """The node is kept for a job without GPUs, whose memory a job of an hour has."""
    wide = job(2, 0, cpus=1, memory=200 * GIB, remaining=known(10 * MINUTE), ran_us=MINUTE)
    holder = running(3, "a1", memory=100 * GIB, remaining=told(HOUR))
    assert decide(state(node_info(gpus=2), LONG, holder, wide), NOW, Policy()) == []
    large = replace(LONG, resources=replace(LONG.resources, memory=100 * GIB))
    assert decide(state(node_info(gpus=2), large, holder, wide), NOW, Policy()) == [PutBack(job="r1", for_job="j2")]


def test_what_is_put_back_does_not_start_there_again() -> None:
    two = job(2, 2, remaining=known(10 * MINUTE), ran_us=MINUTE)
    world = state(node_info(gpus=2), LONG, running(3, "a1", remaining=told(HOUR)), two)
    settle(world, NOW, Policy())
    assert set(world.waiting) == {"r1", "j2"}
    assert world.waiting["r1"].remaining == known(9 * HOUR + MINUTE)


def test_a_new_job_is_tried_on_devices_that_are_kept() -> None:
    two, holder = job(2, 2, remaining=known(10 * MINUTE), ran_us=MINUTE), running(3, "a1", remaining=told(HOUR))
    new = job(4, restartable=True)
    assert starts(decide(state(node_info(gpus=2), holder, two, new), NOW, Policy())) == {"j4": "a0"}
    for other in (replace(new, restartable=False, remaining=known(2 * HOUR)), replace(new, remaining=known(2 * HOUR))):
        assert decide(state(node_info(gpus=2), holder, two, other), NOW, Policy()) == []


def test_no_node_is_emptied_to_try_a_job_while_shorter_ones_wait() -> None:
    """What an untried job is expected to take is an hour: it holds nothing that a job of half an hour could use."""
    wide, holder = job(2, 2, restartable=True, eligible_us=NOW), running(3, "a1", remaining=told(10 * MINUTE))
    shorter, longer = (job(n, remaining=known(us), ran_us=MINUTE) for n, us in ((4, 30 * MINUTE), (5, 3 * HOUR)))
    assert starts(decide(state(node_info(gpus=2), holder, wide, shorter), NOW, Policy())) == {"j4": "a0"}
    assert decide(state(node_info(gpus=2), holder, wide, longer), NOW, Policy()) == []


@settings(max_examples=500)
@given(
    crowds() | worlds(),
    st.builds(Policy, backfill=st.booleans(), preemption=st.booleans(), min_run=st.sampled_from([0, 60])),
)
def test_only_for_a_job_that_waits_for_its_devices(world: SchedulerState, policy: Policy) -> None:
    """It could start if it were alone, and it asks for something of what is held by the one that is put back."""
    for name, blocked in put_back(decide(world, NOW, policy)).items():
        one = world.running[name]
        held, wanted = one.resources, world.waiting[blocked].resources
        assert any(getattr(held, kind) and getattr(wanted, kind) for kind in ("gpus", "cpus", "memory"))
        assert one.restartable
        assert one.since_us + policy.min_run * SECOND <= NOW <= one.trial_ends_us
        assert blocked in world.waiting
        assert policy.order is Order.FAIR
        alone = world.copy()
        for each in [*alone.running, *(alone.waiting.keys() - {blocked})]:
            alone.remove(each)
        assert blocked in starts(decide(alone, NOW, policy))


@settings(max_examples=500)
@given(crowds() | worlds(), st.builds(Policy, backfill=st.booleans(), min_run=st.sampled_from([0, 60])))
def test_nobody_is_put_back_and_starts_there_again_at_once(world: SchedulerState, policy: Policy) -> None:
    decisions = decide(world, NOW, policy)
    assert not starts(decisions).keys() & set(put_back(decisions).values())
    places = {name: world.running[name].placements for name in put_back(decisions)}
    carry_out(world, decisions, NOW)
    again = {one.job: one.placements for one in decide(world, NOW, policy) if isinstance(one, Start)}
    assert [name for name, placements in places.items() if again.get(name) == placements] == []
