"""Schedules worked out by hand, and what holds for every trace."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.gpu_time import DAY_US
from service.scheduler.model.decisions import Decision
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass
from service.scheduler.policy.order import Ranking, rank_jobs
from service.simulator import engine
from service.simulator.engine import REVIEW_US, simulate
from service.simulator.exceptions import TraceError
from service.simulator.knowledge import TOLD_US
from service.simulator.policies import PRESETS
from service.simulator.reservations import TraceReservation, parse
from service.simulator.runs import JobRun, Spell
from service.simulator.trace import SECOND, Cluster, TraceJob
from tests.support.traces import COST, RESERVED, job, run, spells, traces
from torchyard.spec.policy import Policy
from torchyard.spec.restarts import RestartPermission

MINUTE = 60 * SECOND
POLICIES = st.sampled_from(sorted(PRESETS))


def test_fifo_lets_nobody_pass() -> None:
    done = run("fifo", [job(0, 100), job(10, 100, gpus=2), job(20, 10)], gpus=2)
    assert spells(done) == [[(0, 100)], [(100, 200)], [(200, 210)]]


def test_backfill_lets_pass_who_is_expected_to_be_gone_in_time() -> None:
    jobs = [job(0, 100, estimate=100), job(10, 100, gpus=2), job(20, 10, estimate=10), job(25, 10, estimate=90)]
    done = run("fifo-backfill", jobs, gpus=2)
    assert spells(done) == [[(0, 100)], [(100, 200)], [(20, 30)], [(200, 210)]]


def test_sjf_takes_the_shortest_next_and_stops_nobody() -> None:
    done = run("sjf", [job(0, 100), job(1, 50), job(2, 10)])
    assert spells(done) == [[(0, 100)], [(110, 160)], [(100, 110)]]


def test_srtf_stops_for_the_shorter_and_charges_each_restart() -> None:
    done = run("srtf", [job(0, 100), job(1, 50), job(2, 10)])
    assert spells(done) == [[(0, 1), (91, 220)], [(1, 2), (12, 91)], [(2, 12)]]
    assert [spell.lost_us for one in done for spell in one.spells] == [0, 30 * SECOND, 0, 30 * SECOND, 0]


def test_srtf_does_not_stop_for_less_than_that_costs() -> None:
    done = run("srtf", [job(0, 100), job(1, 75)])
    assert spells(done) == [[(0, 100)], [(100, 175)]]


def test_las_prefers_those_that_have_had_less_than_an_hour() -> None:
    done = run("las", [job(0, 7200), job(4000, 60)])
    assert spells(done) == [[(0, 4000), (4060, 7290)], [(4000, 4060)]]


def test_fair_tries_the_new_one_at_once_and_goes_on_with_what_is_shorter() -> None:
    done = run("fair", [job(0, 3600), job(100, 120)])
    assert spells(done) == [[(0, 100), (220, 3750)], [(100, 220)]]
    done = run("fair", [job(0, 3600), job(100, 36_000)])
    assert spells(done) == [[(0, 100), (160, 3690)], [(100, 160), (3690, 39_660)]]


def test_what_cannot_be_stopped_runs_to_its_end() -> None:
    for policy in ("fair", "srtf"):
        done = run(policy, [job(0, 3600, stoppable=False, restartable=RestartPermission.NEVER), job(100, 120)])
        assert spells(done) == [[(0, 3600)], [(3600, 3720)]]


def test_what_cannot_be_stopped_is_tried_put_back_and_started_over() -> None:
    """At 60 the first is known to be long; at 100 nobody may stop it any more."""
    jobs = [job(0, 3600, stoppable=False), job(30, 120, stoppable=False)]
    assert spells(run("fair", jobs)) == [[(0, 60), (180, 3810)], [(60, 180)]]
    jobs = [job(0, 3600, stoppable=False), job(100, 120, stoppable=False)]
    assert spells(run("fair", jobs)) == [[(0, 3600)], [(3600, 3720)]]


def test_what_asks_for_restarts_and_saves_nothing_loses_its_work_whenever_it_is_stopped() -> None:
    """On trial it is put back; later it is stopped for a higher class, but not for being behind."""
    first = job(0, 3600, resumes=False, restartable=RestartPermission.ASKED)
    done = run("fair", [first, job(30, 120)])
    assert spells(done) == [[(0, 60), (180, 3810)], [(60, 180)]]
    assert spells(run("fair", [first, job(100, 120)])) == [[(0, 3600)], [(3600, 3720)]]
    over = run("fair", [first, replace(job(1000, 120), priority=3)])
    assert spells(over) == [[(0, 1000), (1120, 4750)], [(1000, 1120)]]
    assert (done[0].restarts, over[0].restarts) == (1, 0)


def test_a_project_without_restarts_binds_all_but_those_that_ask() -> None:
    closed = Policy(no_restarts=("vision",))
    for says, restarts in ((RestartPermission.NEVER, 0), (RestartPermission.AUTO, 0), (RestartPermission.ASKED, 1)):
        jobs = [job(0, 3600, stoppable=False, restartable=says, project="vision"), job(30, 120, stoppable=False)]
        first, _ = simulate(jobs, Cluster(nodes=1, gpus=1), closed, COST * SECOND)
        assert first.restarts == restarts


def test_what_a_maintenance_stopped_is_not_tried_again() -> None:
    """Tried, it would give way at 7290, a minute after its work began again."""
    jobs = [job(0, 5000, stoppable=False), job(7210, 120, stoppable=False)]
    done = run("fair", jobs, reservations=["3600,7200,0,,,1,,"])
    assert spells(done) == [[(0, 3300), (7200, 12_230)], [(12_230, 12_350)]]


def test_a_trial_is_not_charged_to_its_user() -> None:
    """With a minute of the week charged, nothing of the quota would be left."""
    jobs = [job(0, 3600, stoppable=False), job(30, 120, user="bob", stoppable=False)]
    done = run("fair", jobs, quotas={"users": {"ada": {"max_gpu_hours": 0.01}}})
    assert spells(done) == [[(0, 60), (180, 3810)], [(60, 180)]]


def test_who_tells_nothing_is_expected_to_run_as_long_again() -> None:
    told, untold = ([job(0, 3600, reports=reports), job(100, 1000)] for reports in (True, False))
    assert spells(run("fair", told))[1] == [(100, 1100)]
    assert spells(run("fair", untold))[1][0] == (100, 160)


def test_a_job_larger_than_a_node_takes_as_few_nodes_as_it_can_evenly() -> None:
    (done,) = run("fair", [job(0, 10, gpus=13)], gpus=8, nodes=3)
    (spell,) = done.spells
    assert [len(placement.uuids) for placement in spell.placements] == [7, 7]
    assert done.gpus == 14


def test_a_job_that_fits_on_a_node_is_never_spread() -> None:
    done = run("fair", [job(0, 100, gpus=3), job(0, 100, gpus=3), job(1, 10, gpus=2)], gpus=4, nodes=2, cost=0)
    assert spells(done)[2] != [(1, 11)] or len(done[2].spells[0].placements) == 1
    assert all(len(spell.placements) == 1 for one in done for spell in one.spells)


def test_a_job_that_can_never_fit_is_named() -> None:
    with pytest.raises(TraceError, match=r"line 0, num_gpus: 17 GPUs are more than there are, 2 x 8: give more"):
        run("fair", [job(0, 10, gpus=17)], gpus=8, nodes=2)


@settings(max_examples=60, deadline=None)
@given(policy=POLICIES, jobs=traces(flags=True))
def test_nothing_is_given_twice_and_all_work_is_done(policy: str, jobs: list[TraceJob]) -> None:
    done = run(policy, jobs, gpus=2, nodes=2)
    assert [one.job for one in done] == jobs
    for one in done:
        worked = sum(spell.end_us - spell.start_us - spell.lost_us for spell in one.spells)
        assert worked == one.job.duration_us
        assert one.spells[0].start_us >= one.job.submit_us
        *tries, last = one.spells
        if one.job.keeps_work:
            assert all(spell.lost_us <= COST * SECOND for spell in tries)
            assert one.restarts == 0
        else:
            assert one.restarts <= (2 if one.job.restartable else 0)
            assert len(tries) == one.restarts or one.job.stoppable or one.job.restartable is RestartPermission.ASKED
            assert all(spell.lost_us == spell.end_us - spell.start_us for spell in tries)
            trials = tries[: one.restarts]
            assert all(MINUTE <= spell.lost_us <= MINUTE + COST * SECOND for spell in trials)
        assert last.lost_us == (COST * SECOND if tries else 0)
        assert all(earlier.end_us <= later.start_us for earlier, later in pairwise(one.spells))
        assert all(sum(len(placement.uuids) for placement in spell.placements) == one.gpus for spell in one.spells)
    for spans in _by_device(done).values():
        spans.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(spans))


def _by_device(done: list[JobRun]) -> dict[str, list[tuple[int, int]]]:
    spans: dict[str, list[tuple[int, int]]] = {}
    for one in done:
        for spell in one.spells:
            for placement in spell.placements:
                for uuid in placement.uuids:
                    if spell.end_us > spell.start_us:
                        spans.setdefault(uuid, []).append((spell.start_us, spell.end_us))
    return spans


@settings(max_examples=40, deadline=None)
@given(policy=POLICIES, jobs=traces(most_gpus=1, flags=True))
def test_no_gpu_idles_while_somebody_waits_for_one(policy: str, jobs: list[TraceJob]) -> None:
    done = run(policy, jobs, gpus=2)
    moments = sorted({one.job.submit_us for one in done} | {spell.end_us for one in done for spell in one.spells})
    for at_us in moments:
        waiting = sum(one.job.submit_us <= at_us < one.end_us and not _holds(one, at_us) for one in done)
        held = sum(_holds(one, at_us) for one in done)
        assert held == 2 or not waiting


def _holds(one: JobRun, at_us: int) -> bool:
    return any(spell.start_us <= at_us < spell.end_us for spell in one.spells)


@settings(max_examples=20, deadline=None)
@given(policy=POLICIES, jobs=traces(flags=True))
def test_the_same_trace_comes_to_the_same(policy: str, jobs: list[TraceJob]) -> None:
    assert run(policy, jobs, gpus=4) == run(policy, jobs, gpus=4)


@settings(max_examples=60, deadline=None)
@given(policy=POLICIES, jobs=traces(flags=True))
def test_stopping_and_starting_change_nothing_in_the_order(policy: str, jobs: list[TraceJob]) -> None:
    """So a decision goes on with the order of the one before it: unless the next start costs something, it is exact."""
    with mock.patch.object(engine, "SchedulingPass", _Again):
        run(policy, jobs, gpus=4, cost=0)


class _Again(SchedulingPass):
    """Works the order out anew and compares."""

    def __init__(self, state: SchedulerState, now_us: int, policy: Policy, known: Ranking | None = None) -> None:
        super().__init__(state, now_us, policy, known)
        if known is not None:
            anew = rank_jobs(state, now_us, policy)
            for column in ("key", "level", "score", "left", "overdue", "turn", "worst"):
                np.testing.assert_allclose(getattr(known, column), getattr(anew, column), rtol=1e-9, err_msg=column)


@settings(max_examples=40, deadline=None)
@given(jobs=traces(), chosen=st.data(), estimate=st.integers(0, 10**6))
def test_fair_knows_no_duration_before_it_is_earned(jobs: list[TraceJob], chosen: st.DataObject, estimate: int) -> None:
    """How long one job takes changes nothing until it has run for a minute, whatever its owner expects."""
    number = chosen.draw(st.integers(0, len(jobs) - 1))
    changed = [each if n != number else _longer(each, estimate) for n, each in enumerate(jobs)]
    before, after = run("fair", jobs, gpus=4), run("fair", changed, gpus=4)
    earned_us = min(_earned_us(before[number]), _earned_us(after[number]))
    assert _until(before, earned_us) == _until(after, earned_us)


def _longer(one: TraceJob, estimate: int) -> TraceJob:
    return replace(one, duration_us=one.duration_us + 3600 * SECOND, estimate_us=estimate * SECOND)


def _earned_us(one: JobRun) -> int:
    """When it had run for a minute, or ended."""
    left_us = TOLD_US
    for spell in one.spells:
        worked_us = spell.end_us - spell.start_us - spell.lost_us
        if worked_us >= left_us:
            return spell.start_us + spell.lost_us + left_us
        left_us -= worked_us
    return one.end_us


def _until(done: list[JobRun], at_us: int) -> list[list[int]]:
    """Starts and ends before a moment."""
    return [[us for spell in one.spells for us in (spell.start_us, spell.end_us) if us < at_us] for one in done]


def test_what_waits_is_looked_at_again_when_nothing_has_happened_for_a_while() -> None:
    calm = Policy(preemption=False, time_slice=None)
    jobs = [job(0, 2000), job(100, 5, gpus=2), job(150, 5)]
    done, looks = _looks(lambda: simulate(jobs, Cluster(nodes=1, gpus=2), calm, 0))
    assert spells(done) == [[(0, 2000)], [(2000, 2005)], [(2005, 2010)]]
    assert looks == [0, 100, 150, 750, 1350, 1950, 2000, 2005]


def _looks(simulation: Callable[[], list[JobRun]]) -> tuple[list[JobRun], list[int]]:
    """What it came to, and the seconds at which decisions were made."""
    looks: list[int] = []

    class Noting(SchedulingPass):
        def run(self) -> list[Decision]:
            looks.append(self._now_us // SECOND)
            return super().run()

    with mock.patch.object(engine, "SchedulingPass", Noting):
        return simulation(), looks


def test_that_a_job_becomes_known_is_looked_at_if_it_comes_after_one_that_waits() -> None:
    done, looks = _looks(lambda: run("fair", [job(0, 3600), job(100, 160)]))
    assert spells(done) == [[(0, 100), (260, 3790)], [(100, 260)]]
    assert looks == [0, 100, 260]
    done, looks = _looks(lambda: run("fair", [job(0, 400), job(100, 4000)]))
    assert spells(done) == [[(0, 100), (160, 490)], [(100, 160), (490, 4460)]]
    assert looks == [0, 100, 160, 490]


def test_that_a_job_becomes_known_lets_others_pass_where_nobody_is_stopped() -> None:
    """Until then nobody could tell who would be gone before the job that is blocked could start."""
    calm = Policy(preemption=False, time_slice=None)
    jobs = [job(0, 100), job(100, 2000, user="bob"), job(110, 50, gpus=2), job(120, 100)]
    done = simulate(jobs, Cluster(nodes=1, gpus=2), calm, 0)
    assert spells(done) == [[(0, 100)], [(100, 2100)], [(2100, 2150)], [(160, 260)]]


def test_those_that_were_stopped_start_again_at_once_where_there_is_room() -> None:
    done = run("fair", [job(0, 9000), job(0, 9000), job(0, 1200), job(1000, 50, gpus=2)], gpus=2, nodes=2)
    assert spells(done) == [[(0, 1000), (1000, 9030)], [(0, 1000), (1050, 9080)], [(0, 1200)], [(1000, 1050)]]


def test_a_long_queue_is_served_in_its_order() -> None:
    """Longer than what the policy is shown of it at a time."""
    jobs = [job(number, 10) for number in range(200)]
    assert spells(run("fifo", jobs)) == [[(10 * number, 10 * number + 10)] for number in range(200)]


QUOTAS = {
    "users": {"*": {"max_gpus": 3}, "ada": {"max_gpus": 2, "weight": 2}, "bob": {"max_gpu_hours": 2}},
    "projects": {"default": {"max_gpus": 4, "max_gpu_hours": 20}},
}


@settings(max_examples=40, deadline=None)
@given(policy=POLICIES, jobs=traces(most_gpus=2, flags=True))
def test_no_quota_is_passed_at_any_moment(policy: str, jobs: list[TraceJob]) -> None:
    done = run(policy, jobs, gpus=3, nodes=2, quotas=QUOTAS)
    assert [one.job for one in done] == jobs
    for whose, most in (("ada", 2), ("bob", 3), ("cy", 3), (None, 4)):
        assert _most_at_once(done, whose) <= most
    for whose, hours in (("bob", 2), (None, 20)):
        for at_us in (spell.start_us for one in _of(done, whose) for spell in one.spells):
            assert _week_us(_of(done, whose), at_us) < hours * 3600 * SECOND


def _of(done: list[JobRun], user: str | None) -> list[JobRun]:
    return [one for one in done if user in {None, one.job.user}]


def _most_at_once(done: list[JobRun], user: str | None) -> int:
    changes = sorted(
        change
        for one in _of(done, user)
        for spell in one.spells
        for change in ((spell.start_us, one.gpus), (spell.end_us, -one.gpus))
    )
    return max(accumulate(gpus for _, gpus in changes), default=0)


def _week_us(done: list[JobRun], at_us: int) -> int:
    """GPU time of the seven days before a moment: of what had ended, the eighth day back counts in proportion."""
    today, elapsed = divmod(at_us, DAY_US)
    part, since_us = Fraction(DAY_US - elapsed, DAY_US), (today - 6) * DAY_US
    counted = 0
    for one in done:
        for spell in one.spells:
            if spell.start_us < at_us < spell.end_us:
                counted += one.gpus * min(at_us - spell.start_us, 7 * DAY_US)
            elif spell.end_us <= at_us:
                counted += one.gpus * _overlap(spell, since_us, at_us)
                counted += int(one.gpus * _overlap(spell, since_us - DAY_US, since_us) * part)
    return counted


def _overlap(spell: Spell, since_us: int, until_us: int) -> int:
    return max(min(spell.end_us, until_us) - max(spell.start_us, since_us), 0)


def test_a_week_that_is_spent_goes_on_as_its_days_pass() -> None:
    """Ten hours of one day: when that is seven days ago, nine days count no more bit by bit."""
    jobs = [job(0, 10 * 3600), job(10, 3600), job(20, 600, user="bob")]
    done = run("fifo", jobs, quotas={"users": {"ada": {"max_gpu_hours": 5}}})
    (_, (again,), other) = spells(done)
    assert other == [(36_000, 36_600)]
    assert again[0] == pytest.approx(7 * 86_400 + 43_200, abs=REVIEW_US / SECOND)


def test_weights_are_the_shares_of_those_who_always_have_work() -> None:
    """Jobs alike, more than fit into the time that is looked at."""
    jobs = [job(0, 3600, user=user) for _ in range(100) for user in ("ada", "bob")]
    for weight in (1, 2, 4):
        done = run("fair", jobs, gpus=4, quotas={"users": {"bob": {"weight": weight}}})
        last_us = min(max(one.spells[-1].start_us for one in _of(done, user)) for user in ("ada", "bob"))
        had = {
            user: sum(one.gpus * _overlap(spell, 0, last_us) for one in _of(done, user) for spell in one.spells)
            for user in ("ada", "bob")
        }
        assert had["bob"] / had["ada"] == pytest.approx(weight, rel=0.15)


def test_projects_have_weights_too() -> None:
    jobs = [replace(job(0, 3600), project=project) for _ in range(40) for project in ("light", "heavy")]
    done = run("fair", jobs, gpus=4, quotas={"projects": {"heavy": {"weight": 3}}})
    first = sorted(done, key=lambda one: one.end_us)[:40]
    assert sum(one.job.project == "heavy" for one in first) == pytest.approx(30, abs=3)


def test_how_many_have_ended_is_told_on_the_way() -> None:
    told: list[int] = []
    simulate([job(at, 1) for at in range(600)], Cluster(nodes=1, gpus=1), PRESETS["fifo"], 0, tell=told.append)
    assert told == [256, 512]


GIB = 1 << 30


def test_jobs_share_a_gpu_as_far_as_its_memory_goes() -> None:
    """Three of 30 GiB fit on a GPU of 80 only by two; who wants one whole waits until both are gone."""
    jobs = [*(job(at, 100, share=30 * GIB) for at in (0, 1, 2)), job(3, 10)]
    assert spells(run("fifo", jobs, memory=80 * GIB)) == [[(0, 100)], [(1, 101)], [(100, 200)], [(200, 210)]]
    done = run("fifo", jobs, gpus=2, memory=80 * GIB)
    assert spells(done) == [[(0, 100)], [(1, 101)], [(2, 102)], [(101, 111)]]
    assert [one.gpus for one in done] == [0.375, 0.375, 0.375, 1]


def test_what_shares_is_charged_its_part() -> None:
    """An hour of GPU time is four of a quarter: a fifth that comes later waits until the week is over."""
    jobs = [*(job(number * 3600, 3600, share=20 * GIB) for number in range(4)), job(15_000, 60)]
    done = run("fifo", jobs, memory=80 * GIB, quotas={"users": {"ada": {"max_gpu_hours": 1}}})
    assert [one.spells[0].start_us // SECOND for one in done[:4]] == [0, 3600, 7200, 10_800]
    assert done[4].spells[0].start_us > 6 * DAY_US


@pytest.mark.parametrize(
    ("share", "memory", "message"),
    [
        (GIB, 0, r"line 0, gpu_share: say how much memory each GPU has, such as --gpu-memory 80GiB"),
        (90 * GIB, 80 * GIB, r"line 0, gpu_share: 90.0 GiB are more than a GPU has, 80.0 GiB: give more"),
    ],
)
def test_a_share_that_can_never_fit_is_named(share: int, memory: int, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        run("fair", [job(0, 10, share=share)], memory=memory)


def test_a_reservation_is_for_its_users_alone_and_for_what_is_gone_before() -> None:
    jobs = [job(0, 400, gpus=2, estimate=400), job(10, 50, estimate=50, gpus=2), job(20, 100, user="bob", gpus=2)]
    done = run("fifo-backfill", jobs, gpus=2, reservations=["300,900,,2,bob,,,"])
    assert spells(done) == [[(900, 1300)], [(10, 60)], [(60, 160)]]
    late = run(
        "fifo-backfill", [*jobs[:1], job(400, 100, user="bob", gpus=2)], gpus=2, reservations=["300,900,,2,bob,,,"]
    )
    assert spells(late) == [[(900, 1300)], [(400, 500)]]


def test_who_can_be_stopped_is_in_time_for_a_reservation() -> None:
    """As long before as a checkpoint may take: 300 s."""
    jobs = [job(0, 20_000), job(3600, 60, user="bob")]
    done = run("fair", jobs, reservations=["3600,7200,,1,bob,,,"])
    assert spells(done) == [[(0, 3300), (7200, 23_930)], [(3600, 3660)]]


def test_a_reservation_is_not_known_before_it_is_made_nor_after_it_is_cancelled() -> None:
    jobs = [job(0, 1000, estimate=1000), job(1100, 1000, estimate=1000)]
    made = run("fifo-backfill", jobs, reservations=["500,2600,,1,bob,,400,"])
    assert spells(made) == [[(0, 1000)], [(2600, 3600)]]
    cancelled = run("fifo-backfill", jobs, reservations=["500,2600,,1,bob,,400,1500"])
    assert spells(cancelled) == [[(0, 1000)], [(1500, 2500)]]


def test_nothing_runs_on_a_node_in_maintenance_and_work_is_kept_if_it_can_be() -> None:
    jobs = [job(0, 5000), job(0, 5000, stoppable=False, restartable=RestartPermission.NEVER)]
    done = run("fair", jobs, gpus=2, reservations=["3600,7200,0,,,1,,"])
    assert spells(done) == [[(0, 3300), (7200, 8930)], [(0, 3300), (7200, 12_230)]]
    assert [one.restarts for one in done] == [0, 0], "nobody was put back for another"
    other = run("fair", jobs[:1], nodes=2, reservations=["3600,7200,0,,,1,,"])
    assert spells(other) == [[(0, 3300), (3300, 5030)]], "on the other node"


WINDOWS = st.builds(
    lambda first, lasts, what, made: f"{first},{first + lasts},{what},{made},",
    st.integers(0, 10_000),
    st.integers(1, 10_000),
    st.sampled_from(["0,,,1", "1,,,1", "0;1,,,1", ",1,bob,", ",2,ada,", ",4,cy,", "0,,bob,", "1,,ada;bob,"]),
    st.sampled_from(["", "0", "5000"]),
)


@settings(max_examples=80, deadline=None)
@given(
    policy=POLICIES,
    jobs=traces(flags=True, shares=(0, 0, 10 * GIB, 30 * GIB)),
    windows=st.lists(WINDOWS, max_size=3),
)
def test_shares_reservations_and_maintenance_hold_in_every_trace(
    policy: str, jobs: list[TraceJob], windows: list[str]
) -> None:
    cluster = Cluster(nodes=2, gpus=2, gpu_memory=80 * GIB)
    done = run(policy, jobs, gpus=2, nodes=2, memory=80 * GIB, reservations=windows, quotas=QUOTAS_OF_GPUS)
    assert [one.job for one in done] == jobs
    for one in done:
        worked = sum(spell.end_us - spell.start_us - spell.lost_us for spell in one.spells)
        assert worked == one.job.duration_us
    _never_beyond_a_gpu(done)
    assert _most_whole_at_once(done, "ada") <= 4
    for window in parse([RESERVED, *windows], cluster):
        for one in done:
            for spell in one.spells:
                _keeps_out(one, spell, window)


QUOTAS_OF_GPUS = {"users": {"ada": {"max_gpus": 4}}}


def _never_beyond_a_gpu(done: list[JobRun]) -> None:
    """Of each GPU no more memory is given out at a moment than it has; who has it whole has all of it."""
    changes: dict[str, list[tuple[int, int]]] = {}
    for one in done:
        for spell in one.spells:
            for placement in spell.placements if spell.end_us > spell.start_us else ():
                for uuid in placement.uuids:
                    taken = one.job.gpu_share or 80 * GIB
                    changes.setdefault(uuid, []).extend([(spell.start_us, taken), (spell.end_us, -taken)])
    for each in changes.values():
        assert max(accumulate(taken for _, taken in sorted(each))) <= 80 * GIB


def _most_whole_at_once(done: list[JobRun], user: str) -> int:
    """Most GPUs of a user at a moment, one that is shared counting as one."""
    changes = sorted(
        change
        for one in _of(done, user)
        for spell in one.spells
        for gpus in [sum(len(placement.uuids) for placement in spell.placements)]
        for change in ((spell.start_us, gpus), (spell.end_us, -gpus))
    )
    return max(accumulate(gpus for _, gpus in changes), default=0)


def _keeps_out(one: JobRun, spell: Spell, window: TraceReservation) -> None:
    """Nobody runs across a maintenance, and nobody begins on whole nodes that are reserved for others."""
    info, nodes = window.info, {placement.node for placement in spell.placements}
    first_us = max(info.starts_us, window.made_us or info.starts_us)
    if not nodes & info.nodes or first_us >= window.over_us or spell.end_us == spell.start_us:
        return
    if info.maintenance:
        assert spell.end_us <= first_us or window.over_us <= spell.start_us
    elif one.job.user not in info.users:
        assert not first_us <= spell.start_us < window.over_us
