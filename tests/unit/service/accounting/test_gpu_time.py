"""The split of GPU time: whole, never negative, and told as people would tell it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from service.accounting.gpu_time import (
    DAY_US,
    AttemptTimeline,
    DeviceOccupancy,
    UsageKind,
    WorkOutcome,
    idle_spans,
    release_time,
    split,
)

HOUR = 3_600_000_000
MOMENTS = st.integers(0, 5 * DAY_US)


@st.composite
def helds(draw: st.DrawFn) -> DeviceOccupancy:
    since, until = draw(MOMENTS), draw(MOMENTS)
    edges = sorted(draw(st.sets(MOMENTS, max_size=8)))
    idle = tuple(zip(edges[::2], edges[1::2], strict=False))
    of = draw(st.integers(1, 80 * 2**30))
    return DeviceOccupancy(since_us=since, until_us=until, share=draw(st.integers(1, of)), of=of, idle=idle)


COURSES = st.builds(
    AttemptTimeline,
    outcome=st.sampled_from(WorkOutcome),
    started_us=st.none() | MOMENTS,
    restart=st.booleans(),
    saved_us=st.none() | MOMENTS,
)


@given(st.lists(helds(), max_size=4), COURSES)
def test_the_kinds_add_up_to_all_that_was_held(held: list[DeviceOccupancy], timeline: AttemptTimeline) -> None:
    whole = sum(each.share * max(0, each.until_us - each.since_us) // each.of for each in held)
    found = split(held, timeline)
    assert sum(found.values()) == whole
    assert all(value >= 0 for value in found.values())


@given(helds(), COURSES)
def test_a_day_holds_no_more_than_a_day_and_nothing_outside_the_time_held(
    held: DeviceOccupancy, timeline: AttemptTimeline
) -> None:
    days: Counter[int] = Counter()
    for (day, _), value in split([held], timeline).items():
        days[day] += value
    for day, value in days.items():
        assert value <= DAY_US
        assert held.since_us // DAY_US <= day <= held.until_us // DAY_US


@given(helds(), COURSES)
def test_what_was_measured_idle_is_idle(held: DeviceOccupancy, timeline: AttemptTimeline) -> None:
    whole = DeviceOccupancy(since_us=held.since_us, until_us=held.until_us, idle=((0, 6 * DAY_US),))
    assert {kind for _, kind in split([whole], timeline)} <= {UsageKind.IDLE}


@given(since=MOMENTS, held=st.integers(0, DAY_US), before=st.integers(0, HOUR), step=st.integers(-DAY_US, DAY_US))
def test_a_clock_that_is_set_is_charged_to_nobody(since: int, held: int, before: int, step: int) -> None:
    most = 2 * HOUR
    free = release_time(since, since + before + held + step, held, most)
    assert held <= free - since <= held + most
    if step == 0:
        assert free == since + before + held, "whole, if nobody sets it"


def kinds(timeline: AttemptTimeline, **held: object) -> dict[UsageKind, float]:
    """Hours by kind of a device held from hour 1 to hour 11."""
    fields: dict[str, object] = {"since_us": HOUR, "until_us": 11 * HOUR} | held
    found: Counter[UsageKind] = Counter()
    for (_, kind), value in split([DeviceOccupancy(**fields)], timeline).items():  # type: ignore[arg-type]
        found[kind] += value
    return {kind: value / HOUR for kind, value in found.items()}


def test_a_run_that_succeeds_is_useful_from_its_first_instruction() -> None:
    timeline = AttemptTimeline(outcome=WorkOutcome.KEPT, started_us=2 * HOUR)
    assert kinds(timeline) == {UsageKind.IDLE: 1, UsageKind.USEFUL: 9}
    assert kinds(timeline, idle=((4 * HOUR, 6 * HOUR),)) == {UsageKind.IDLE: 3, UsageKind.USEFUL: 7}


def test_what_is_done_again_is_lost_and_so_is_starting_again() -> None:
    first = AttemptTimeline(outcome=WorkOutcome.CONTINUED, started_us=2 * HOUR, saved_us=9 * HOUR)
    assert kinds(first) == {UsageKind.IDLE: 1, UsageKind.USEFUL: 7, UsageKind.LOST: 2}
    assert kinds(AttemptTimeline(outcome=WorkOutcome.CONTINUED, started_us=2 * HOUR)) == {
        UsageKind.IDLE: 1,
        UsageKind.LOST: 9,
    }
    assert kinds(AttemptTimeline(outcome=WorkOutcome.KEPT, started_us=2 * HOUR, restart=True)) == {
        UsageKind.LOST: 1,
        UsageKind.USEFUL: 9,
    }


def test_a_failure_that_nobody_continues_is_failed() -> None:
    assert kinds(AttemptTimeline(outcome=WorkOutcome.FAILED, started_us=2 * HOUR)) == {
        UsageKind.IDLE: 1,
        UsageKind.FAILED: 9,
    }
    assert kinds(AttemptTimeline(outcome=WorkOutcome.FAILED, started_us=None)) == {UsageKind.FAILED: 10}


def test_a_part_of_a_shared_device_is_a_part_of_its_time() -> None:
    assert kinds(AttemptTimeline(outcome=WorkOutcome.KEPT, started_us=HOUR), share=20, of=80) == {UsageKind.USEFUL: 2.5}


def test_idle_buckets_that_follow_one_another_are_one_span() -> None:
    assert idle_spans([(1, 0.0), (2, 4.9), (3, 5.0), (5, 1.0)], 10) == ((10, 30), (50, 60))
