"""Who comes first."""

from dataclasses import replace
from typing import Any

from service.scheduler.model.jobs import EstimateSource, IneligibleReason, TenantAccount, Waiting
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import PERIOD_US, TURN_US, order
from tests.unit.service.scheduler.worlds import DAY, HOUR, MINUTE, NOW, job, known, node_info, running, state
from torchyard.spec.policy import Order, Policy

FAIR = Policy()
#: The first moment of a turn of the overdue, and the one after its last.
TURN = NOW - NOW % PERIOD_US + PERIOD_US


def tried(number: int, left_us: int, **fields: Any) -> Waiting:
    return job(number, remaining=known(left_us), **fields)


def new(number: int, **fields: Any) -> Waiting:
    return job(number, restartable=True, **fields)


def queue(*jobs: Any, now_us: int = NOW, policy: Policy = FAIR, **fields: Any) -> str:
    """The numbers of the jobs in order."""
    return " ".join(name.removeprefix("j") for name in order(state(*jobs, **fields), now_us, policy))


def test_the_untried_then_the_shorter() -> None:
    assert queue(tried(1, HOUR), tried(2, MINUTE), new(3), new(4), new(5, ran_us=2 * MINUTE)) == "3 4 2 5 1"


def test_what_is_not_told_by_its_own_steps_is_told_by_history_and_else_by_what_it_ran() -> None:
    told = job(1, ran_us=MINUTE, remaining=known(3 * HOUR, EstimateSource.HISTORY))
    silent = job(2, ran_us=2 * HOUR)
    assert queue(told, silent, tried(3, HOUR), tried(4, 4 * HOUR)) == "3 2 1 4"


def test_age_counts_by_its_root() -> None:
    old = tried(1, 3 * HOUR, eligible_us=NOW - 8 * DAY, ran_us=8 * DAY)
    assert queue(old, tried(2, HOUR + MINUTE), tried(3, HOUR - MINUTE)) == "3 1 2"


def test_from_its_thirtieth_day_on_age_counts_for_more() -> None:
    def as_old_as(days: int, left_us: int) -> str:
        old = tried(1, left_us, eligible_us=NOW - days * DAY, ran_us=days * DAY)
        return queue(old, tried(2, HOUR + MINUTE), tried(3, HOUR - MINUTE))

    assert as_old_as(24, 5 * HOUR) == "3 1 2"
    assert as_old_as(48, 7 * HOUR) == "1 3 2"
    assert as_old_as(63, 8 * 2**6 * HOUR) == "1 3 2"
    assert as_old_as(63, 8 * 3**6 * HOUR) == "3 2 1"


def test_classes_before_all_else_and_waiting_lifts_into_those_there_are() -> None:
    assert queue(tried(1, HOUR, priority=0), tried(2, DAY, priority=2)) == "2 1"
    lifted = tried(1, HOUR, priority=0, eligible_us=NOW - 2 * DAY)
    assert queue(lifted, tried(2, DAY, priority=2), tried(3, MINUTE, priority=1)) == "1 2 3"
    assert queue(tried(1, HOUR, eligible_us=NOW - 2 * DAY), tried(2, MINUTE)) == "2 1"


def test_those_who_had_more_than_their_share_come_later() -> None:
    users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "bob": TenantAccount(usage=1e5, usage_us=NOW)}
    jobs = (tried(1, HOUR, user="ann"), tried(2, HOUR + 10 * MINUTE, user="bob"))
    assert queue(*jobs) == "1 2"
    assert queue(*jobs, users=users) == "2 1"
    assert queue(*jobs, users=users | {"ann": TenantAccount(usage=1e6, usage_us=NOW, weight=20)}) == "1 2"
    faded = users | {"ann": TenantAccount(usage=1e6, usage_us=NOW - 70 * DAY)}
    assert queue(*jobs, users=faded) == "1 2"


def test_so_do_their_untried_jobs_but_before_all_that_were_tried() -> None:
    users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "bob": TenantAccount(usage=1e5, usage_us=NOW)}
    jobs = (new(1, user="ann"), new(2, user="bob"), new(3, user="bob"), tried(4, MINUTE, user="bob"))
    assert queue(*jobs) == "1 2 3 4"
    assert queue(*jobs, users=users) == "2 3 1 4"
    assert queue(*jobs, users=users | {"ann": TenantAccount(usage=1e6, usage_us=NOW, weight=20)}) == "1 2 3 4"


def test_what_runs_now_counts_as_had() -> None:
    held = running(9, "a0 a1 a2 a3", user="ann", since_us=NOW - 10 * HOUR)
    assert queue(node_info(), held, tried(1, HOUR, user="ann"), tried(2, HOUR + MINUTE, user="bob")) == "2 1"


def test_projects_share_as_users_do() -> None:
    projects = {"vision": TenantAccount(usage=1e6, usage_us=NOW)}
    jobs = (tried(1, HOUR, user="ann"), tried(2, HOUR + MINUTE, user="ann", project="speech"))
    assert queue(*jobs, projects=projects) == "2 1"


def test_the_overdue_have_turns_right_behind_the_untried() -> None:
    late = tried(1, DAY, gpus=4, eligible_us=TURN - 5 * DAY, preemptible=True)
    later = tried(2, DAY, gpus=4, eligible_us=TURN - 4 * DAY, preemptible=True)
    jobs = (node_info(), late, later, tried(3, MINUTE, eligible_us=TURN), new(4, eligible_us=TURN))
    assert queue(*jobs, now_us=TURN) == "4 1 3 2"
    assert queue(*jobs, now_us=TURN + TURN_US - 1) == "4 1 3 2"
    assert queue(*jobs, now_us=TURN + TURN_US) == "4 3 1 2"
    assert queue(node_info(gpus=32), *jobs, now_us=TURN).startswith("4 1")


def test_as_many_of_the_overdue_as_fit_into_half_of_the_gpus_have_their_turn() -> None:
    overdue = [tried(number, DAY, eligible_us=TURN - 9 * DAY + number, preemptible=True) for number in range(6)]
    short = tried(9, MINUTE, eligible_us=TURN)
    assert queue(node_info(gpus=8), *overdue, short, now_us=TURN) == "0 1 2 3 9 4 5"


def test_what_cannot_be_stopped_is_overdue_only_after_thirty_times_its_length() -> None:
    late = tried(1, DAY, eligible_us=TURN - 29 * DAY)
    short = tried(2, MINUTE, eligible_us=TURN)
    assert queue(node_info(), late, short, now_us=TURN) == "2 1"
    assert queue(node_info(), replace(late, eligible_us=TURN - 31 * DAY), short, now_us=TURN) == "1 2"
    assert queue(node_info(), replace(late, preemptible=True), short, now_us=TURN) == "1 2"


def test_who_can_neither_be_stopped_nor_start_over_is_placed_by_the_length_that_is_expected() -> None:
    refuses = job(1)
    assert queue(refuses, tried(2, 30 * MINUTE), tried(3, 2 * HOUR), new(4)) == "4 2 1 3"
    history = replace(refuses, remaining=known(3 * HOUR, EstimateSource.HISTORY))
    assert queue(history, tried(2, 30 * MINUTE), tried(3, 2 * HOUR)) == "2 3 1"
    assert queue(refuses, tried(2, 30 * MINUTE), policy=Policy(restarts=0)) == "1 2"


def test_the_orders_that_others_have() -> None:
    jobs = (tried(1, HOUR, ran_us=2 * HOUR), tried(2, 2 * HOUR), tried(3, MINUTE))
    for by, expected in ((Order.FIFO, "1 2 3"), (Order.SRTF, "3 1 2"), (Order.SJF, "3 1 2"), (Order.LAS, "2 3 1")):
        assert queue(*jobs, policy=Policy(order=by)) == expected


def test_ineligible_jobs_are_last() -> None:
    assert queue(job(1, ineligible=IneligibleReason.HELD), tried(2, DAY), job(3)) == "3 2 1"


def test_the_order_of_a_copy_is_its_own() -> None:
    world = state(tried(1, HOUR), tried(2, MINUTE))
    other: SchedulerState = world.copy()
    other.remove("j2")
    other.put([new(3)])
    assert order(other, NOW, Policy()) == ["j3", "j1"]
    assert order(world, NOW, Policy()) == ["j2", "j1"]
