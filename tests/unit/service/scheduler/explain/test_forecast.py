"""When jobs start, as the policy itself plays it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from service.scheduler.explain import forecast
from service.scheduler.explain.forecast import Expected, expected_start
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, Running, TenantAccount
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from tests.support.sharing import HOUR, MINUTE, NOW, SECOND, lasting, node, runs, state, waits
from torchyard.spec.policy import Policy

#: Nobody is stopped for others: what runs, runs to its end.
CALM = Policy(preemption=False, time_slice=None)


def minutes(found: Expected) -> list[int | None]:
    return [None if each is None else round((each - NOW) / MINUTE) for each in found[:2]]


def expected(made: SchedulerState, job: str = "j1", policy: Policy = CALM) -> list[int | None]:
    return minutes(expected_start(made, job, NOW, policy))


FULL = ("a0", "a1", "a2", "a3")


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ([waits(1)], [0, 0]),
        ([waits(1), runs(2, *FULL, minutes=60)], [60, 120]),
        ([waits(1), runs(2, *FULL, minutes=60, ends_us=NOW + 30 * MINUTE)], [30, 30]),
        ([waits(1), runs(2, *FULL, minutes=None)], [None, None]),
        ([waits(1), runs(2, *FULL, minutes=None, ends_us=NOW + HOUR)], [60, 60]),
        ([waits(1, 2), runs(2, "a0", "a1", minutes=None), runs(3, "a2", "a3", minutes=30)], [30, 60]),
        ([waits(1), waits(0, 4, minutes=10, priority=2), runs(2, *FULL, minutes=60)], [70, 140]),
        ([waits(1), waits(0, 4, minutes=None, priority=2), runs(2, *FULL, minutes=60)], [None, None]),
        ([waits(1), waits(9, 4, minutes=None, priority=0), runs(2, *FULL, minutes=60)], [60, 120]),
        ([waits(1, ineligible=IneligibleReason.HELD)], [None, None]),
        ([waits(1, ineligible=IneligibleReason.SAVING)], [0, 0]),
        ([waits(1), waits(0, priority=2, ineligible=IneligibleReason.HELD, gpus=4)], [0, 0]),
        ([waits(1, 5)], [None, None]),
    ],
)
def test_the_start(jobs: list[Any], told: list[int | None]) -> None:
    assert expected(state(*jobs)) == told


def test_the_place_and_the_end_of_the_first_run() -> None:
    found = expected_start(state(waits(1, 2, minutes=10), runs(2, *FULL, minutes=60)), "j1", NOW, CALM)
    assert [(place.node, len(place.uuids)) for place in found.placements] == [("a", 2)]
    assert [round((end - NOW) / MINUTE) for end in (found.end_p50_us, found.end_p90_us)] == [70, 140]
    nobody_knows = expected_start(state(waits(1, minutes=None)), "j1", NOW, CALM)
    assert (nobody_knows.p50_us, nobody_knows.end_p50_us) == (NOW, math.inf)


def test_nothing_of_the_state_changes() -> None:
    made = state(waits(1), waits(2, 4), runs(3, *FULL))
    before = (dict(made.waiting), dict(made.running))
    expected(made)
    assert (made.waiting, made.running) == before


def test_a_job_that_others_are_stopped_for() -> None:
    stopped = runs(2, *FULL, preemptible=True, priority=0)
    found = expected_start(state(waits(1, priority=3), stopped), "j1", NOW, Policy(time_slice=None))
    assert found.p50_us == NOW + 30 * SECOND, "the cost of the preemption"


def test_jobs_that_give_way_are_gone_when_their_checkpoints_are_due() -> None:
    asked = runs(2, *FULL, preempted_for="j1", asked_us=NOW - 10 * SECOND, due_us=NOW + 290 * SECOND)

    def start(victim: Running) -> list[float]:
        found = expected_start(state(waits(1), victim), "j1", NOW, Policy())
        return [((each or 0) - NOW) / SECOND for each in found[:2]]

    assert start(asked) == [20, 320]
    assert start(replace(asked, asked_us=NOW - 100 * SECOND, due_us=NOW + 200 * SECOND)) == [100, 230]
    assert start(replace(asked, stops=True)) == [30, 30]


def test_reservations_are_waited_for() -> None:
    reserved = ReservationInfo(id="r", name="demo", starts_us=NOW, ends_us=NOW + HOUR, users=frozenset({"eve"}))
    assert expected(state(waits(1), reservations=(reserved,))) == [60, 60]


def test_a_maintenance_is_waited_for_and_the_one_after_it() -> None:
    closed = replace(node(closed=ClosedReason.DRAINING), maintenance="m1")
    spans = (("m1", -60, 30), ("m2", 30, 50), ("m3", 300, 600))
    planned = [
        ReservationInfo(
            id=name,
            name=name,
            starts_us=NOW + starts * MINUTE,
            ends_us=NOW + ends * MINUTE,
            maintenance=True,
            nodes=frozenset("a"),
        )
        for name, starts, ends in spans
    ]
    assert expected(state(waits(1), nodes=(closed,), reservations=tuple(planned))) == [50, 50]
    assert expected(state(waits(1), nodes=(closed,), reservations=())) == [0, 0], "it has just been cancelled"
    by_hand = node(closed=ClosedReason.DRAINING)
    assert expected(state(waits(1), nodes=(by_hand,), reservations=tuple(planned))) == [None, None]


def test_what_is_overdue_is_not_over() -> None:
    late = runs(2, *FULL, minutes=0)
    assert expected_start(state(waits(1), late), "j1", NOW, CALM).p50_us == NOW + forecast.OVERDUE_US


def test_the_work_is_bounded() -> None:
    queue = [waits(number, 4, minutes=1) for number in range(2, forecast.MAX_AHEAD + 3)]
    assert expected(state(*queue), f"j{forecast.MAX_AHEAD + 2}") == [None, None]
    assert expected(state(*queue), "j12") == [10, 20]


def test_p90_is_not_before_p50() -> None:
    """Where long jobs leave a hole that short ones would not."""
    jobs = [waits(0, 4, minutes=10, priority=2), waits(1, 1, minutes=20), runs(2, "a0", "a1", minutes=15)]
    made = state(*jobs, nodes=(node(gpus=4),))
    found = expected_start(made, "j1", NOW, CALM)
    assert found.p50_us is not None
    assert found.p90_us is not None
    assert found.p50_us <= found.p90_us
    assert lasting(20).p90_us > 0


def test_what_gives_way_to_a_job_over_its_quota_is_spared() -> None:
    preemptor, victim = waits(9, 4, user="cyd", priority=2), runs(2, *FULL, preempted_for="j9")
    made = state(waits(1), preemptor, victim, users={"cyd": TenantAccount(max_gpus=2)})
    assert expected(made) == [60, 120]
