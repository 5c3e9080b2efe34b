"""Who may pass a blocked job, and the oldest one that is overdue, where nobody can be stopped."""

from dataclasses import replace

from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.policy.decide import decide
from service.scheduler.policy.order import PERIOD_US
from tests.unit.service.scheduler.worlds import DAY, HOUR, MINUTE, NOW, job, known, node_info, running, starts, state
from torchyard.spec.policy import Policy

POLICY = Policy(preemption=False, time_slice=None, longest_wait="3d")
#: Overdue for a day.
OLDEST = job(1, gpus=4, eligible_us=NOW - 4 * DAY)
BRIEF, LONG, UNKNOWN = job(2, remaining=known(HOUR)), job(3, remaining=known(3 * HOUR)), job(4)
LIMITED = job(5, limit_us=2 * HOUR)


def passes(in_its_way: Running) -> set[str]:
    return set(starts(decide(state(node_info(), in_its_way, OLDEST, BRIEF, LONG, UNKNOWN, LIMITED), NOW, POLICY)))


def test_who_is_expected_to_be_gone_before_those_that_were_there_first() -> None:
    assert passes(running(9, "a0", since_us=NOW - 2 * DAY, remaining=known(2 * HOUR))) == {"j2", "j5"}


def test_nobody_any_more_once_only_those_are_in_its_way_that_came_after() -> None:
    assert passes(running(9, "a0", since_us=NOW - HOUR, remaining=known(2 * HOUR))) == set()


def test_nobody_as_long_as_nothing_is_known_of_those_that_were_there_first() -> None:
    assert passes(running(9, "a0", since_us=NOW - 2 * DAY)) == set()


def test_it_is_the_oldest_only_since_an_older_one_has_started() -> None:
    older = running(9, "a0", since_us=NOW - HOUR, eligible_us=NOW - 5 * DAY, remaining=known(2 * HOUR))
    assert passes(older) == {"j2", "j5"}


def test_whose_limit_ends_it_before_what_is_in_the_way_must_end() -> None:
    assert passes(running(9, "a0", since_us=NOW - HOUR, ends_us=NOW + 2 * HOUR)) == {"j5"}


def test_whose_end_before_the_next_turn_is_sure_if_the_oldest_would_stop_others_for_it() -> None:
    """An hour before the turn: half an hour may take twice as long, 40 minutes may not."""
    now = (NOW // PERIOD_US + 1) * PERIOD_US - HOUR
    oldest = replace(OLDEST, remaining=known(9 * HOUR), ran_us=HOUR, preemptible=True, eligible_us=now - 4 * DAY)
    in_its_way = running(9, "a0", since_us=now - HOUR, preemptible=True, remaining=known(MINUTE))
    sure, unsure = (job(n, remaining=known(minutes * MINUTE), ran_us=1) for n, minutes in ((2, 30), (3, 40)))
    assert set(starts(decide(state(node_info(), in_its_way, oldest, sure, unsure), now, Policy()))) == {"j2"}


def test_what_is_held_for_a_job_that_is_not_overdue_is_lent_at_a_risk_of_a_half() -> None:
    """Of the second and the third five in ten are gone in time, of the fourth nine in ten, of the fifth none."""
    in_its_way = running(9, "a0", since_us=NOW - HOUR, remaining=known(2 * HOUR))
    lengths = ((HOUR, 9 * HOUR), (2 * HOUR, 9 * HOUR), (HOUR, 2 * HOUR), (3 * HOUR, 3 * HOUR))
    others = [
        job(n, remaining=replace(known(p50), p90_us=p90), eligible_us=NOW - 1)
        for n, (p50, p90) in enumerate(lengths, 2)
    ]

    def start(blocked: Waiting) -> set[str]:
        return set(starts(decide(state(node_info(), in_its_way, blocked, *others), NOW, POLICY)))

    wide = job(1, gpus=4, remaining=known(MINUTE), eligible_us=NOW - HOUR)
    assert start(wide) == {"j2", "j3", "j4"}
    assert start(replace(wide, eligible_us=OLDEST.eligible_us)) == set()
