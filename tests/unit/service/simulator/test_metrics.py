"""Figures, each once by hand and once worked out again the slow way."""

import math
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.explain.idle_time import IdleTime
from service.simulator import metrics
from service.simulator.metrics import SimulationMetrics, jain, measure, share_out, standings
from service.simulator.policies import PRESETS
from service.simulator.runs import JobRun
from service.simulator.trace import SECOND, Cluster, TraceJob
from tests.support.traces import job, run, traces


def figures(done: list[JobRun], gpus: int) -> SimulationMetrics:
    cluster = Cluster(nodes=1, gpus=gpus)
    return measure(done, cluster, standings(done, cluster), IdleTime())


def test_figures_of_a_schedule_known_by_hand() -> None:
    done = run("srtf", [job(0, 100), job(1, 50), job(2, 10)])
    found = figures(done, 1)
    assert found.mean_jct == pytest.approx((220 + 90 + 10) / 3)
    assert found.p50_jct == pytest.approx(90)
    assert found.p99_jct == pytest.approx(90 + 0.98 * 130)
    assert found.mean_wait == pytest.approx((90 + 10 + 0) / 3)
    assert found.p99_wait == pytest.approx(10 + 0.98 * 80)
    assert found.makespan == pytest.approx(220)
    assert found.utilization == pytest.approx(1)
    assert found.preemptions == 2
    assert found.gpu_seconds_lost == pytest.approx(60)
    assert found.jain == pytest.approx(1)
    assert found.mean_slowdown == pytest.approx((2.2 + 1.8 + 1) / 3)
    assert (found.restarts, found.avoidable_idle, found.kept_idle) == (0, 0, 0)


def test_a_job_of_a_moment_is_not_slowed_down_a_thousand_times() -> None:
    assert figures(run("fifo", [job(0, 99), job(0, 1)]), 1).mean_slowdown == pytest.approx((1 + 10) / 2)


def test_who_waits_for_another_user_is_less_satisfied() -> None:
    """From 0 to 100 both could have one of two GPUs; bob gets his two only when ada's jobs are over."""
    done = run("fifo", [job(0, 100, gpus=2, user="ada"), job(0, 100, gpus=2, user="bob")], gpus=2)
    ada, bob = standings(done, Cluster(nodes=1, gpus=2))
    assert (ada.user, ada.entitled, ada.got, ada.satisfaction) == ("ada", 100, 200, 1)
    assert (bob.user, bob.entitled, bob.got) == ("bob", 300, 200)
    assert figures(done, 2).jain == pytest.approx((1 + 2 / 3) ** 2 / (2 * (1 + 4 / 9)))


@pytest.mark.parametrize(
    ("values", "index"), [([1, 1, 1], 1), ([1, 0, 0], 1 / 3), ([0, 0], 1), ([], 1), ([1, 0.5], 0.9)]
)
def test_jains_index(values: list[float], index: float) -> None:
    assert jain(values) == pytest.approx(index)


@pytest.mark.parametrize(
    ("demand", "gpus", "shares"),
    [
        ([1, 2], 8, [1, 2]),
        ([1, 9, 9], 8, [1, 3.5, 3.5]),
        ([0, 8, 8], 8, [0, 4, 4]),
        ([2, 3, 9, 1], 8, [2, 2.5, 2.5, 1]),
        ([4, 4], 8, [4, 4]),
    ],
)
def test_gpus_are_shared_out_evenly(demand: list[float], gpus: float, shares: list[float]) -> None:
    assert share_out(np.array(demand, dtype=float), gpus, np.ones(len(demand))) == pytest.approx(shares)


@pytest.mark.parametrize(
    ("demand", "weights", "shares"),
    [
        ([9, 9], [3, 1], [6, 2]),
        ([1, 9], [3, 1], [1, 7]),
        ([9, 1, 9], [2, 4, 1], [14 / 3, 1, 7 / 3]),
        ([3, 4], [5, 1], [3, 4]),
    ],
)
def test_twice_the_weight_is_twice_the_share(demand: list[float], weights: list[float], shares: list[float]) -> None:
    assert share_out(np.array(demand, dtype=float), 8, np.array(weights, dtype=float)) == pytest.approx(shares)


def test_weights_say_who_was_entitled_to_what() -> None:
    done = run("fifo", [job(0, 100, gpus=3, user="ada"), job(0, 100, gpus=3, user="bob")], gpus=4)
    ada, bob = standings(done, Cluster(nodes=1, gpus=4), {"bob": 3.0})
    assert (ada.entitled, bob.entitled) == (100, 600)
    assert (ada.mean_wait, bob.mean_wait) == (0, 100)


def test_each_row_of_demands_is_divided_for_itself() -> None:
    rows = np.array([[1.0, 9, 9], [2, 3, 1], [0, 0, 0], [9, 9, 9]])
    shares = [[1, 3.5, 3.5], [2, 3, 1], [0, 0, 0], [8 / 3, 8 / 3, 8 / 3]]
    assert share_out(rows, 8, np.ones(3)) == pytest.approx(np.array(shares))


@given(demand=st.lists(st.integers(0, 50), min_size=1, max_size=12), gpus=st.integers(1, 64))
def test_nobody_could_have_more_without_somebody_having_less_than_them(demand: list[int], gpus: int) -> None:
    shares = share_out(np.array(demand, dtype=float), gpus, np.ones(len(demand)))
    assert shares.sum() == pytest.approx(min(sum(demand), gpus))
    short = [share for share, wanted in zip(shares, demand, strict=True) if share < wanted - 1e-9]
    assert all(share == pytest.approx(shares.max()) for share in short)


@settings(max_examples=30, deadline=None)
@given(policy=st.sampled_from(sorted(PRESETS)), jobs=traces(most=6))
def test_figures_worked_out_again(policy: str, jobs: list[TraceJob]) -> None:
    cluster = Cluster(nodes=1, gpus=4)
    done = run(policy, jobs, gpus=4)
    found = figures(done, 4)
    waits = [_waited(one) for one in done]
    assert found.mean_wait * len(done) == pytest.approx(sum(waits))
    assert found.p99_wait <= max(waits) + 1e-6
    assert found.mean_jct * len(done) == pytest.approx(sum(waits) + sum(_held(one) for one in done))
    work = sum(one.job.gpus * one.job.duration_us / SECOND for one in done)
    assert found.utilization * found.makespan * 4 == pytest.approx(work + found.gpu_seconds_lost)
    slowly = {user: pytest.approx(pair) for user, pair in _slowly(done, 4).items()}
    for together in (metrics._MOMENTS, 3):
        with mock.patch.object(metrics, "_MOMENTS", together):
            got = {one.user: (one.entitled, one.got) for one in standings(done, cluster)}
        assert got == slowly


def _held(one: JobRun) -> float:
    return sum(spell.end_us - spell.start_us for spell in one.spells) / SECOND


def _waited(one: JobRun) -> float:
    """The gaps before the spells."""
    ends = [one.job.submit_us, *(spell.end_us for spell in one.spells)]
    return sum(spell.start_us - end for spell, end in zip(one.spells, ends, strict=False)) / SECOND


def _slowly(done: list[JobRun], gpus: int) -> dict[str, tuple[float, float]]:
    """Entitlement by pouring GPUs out drop by drop between any two moments, and what was held."""
    users = sorted({one.job.user for one in done})
    moments = sorted({one.job.submit_us for one in done} | {one.end_us for one in done})
    entitled = dict.fromkeys(users, 0.0)
    for begin, end in pairwise(moments):
        wanted = dict.fromkeys(users, 0)
        for one in done:
            if one.job.submit_us <= begin < one.end_us:
                wanted[one.job.user] += one.gpus
        for user, share in _poured(wanted, gpus).items():
            entitled[user] += share * (end - begin) / SECOND
    got = {user: sum(one.gpus * _held(one) for one in done if one.job.user == user) for user in users}
    return {user: (entitled[user], got[user]) for user in users}


def _poured(wanted: dict[str, int], gpus: int) -> dict[str, float]:
    shares, left = dict.fromkeys(wanted, 0.0), float(gpus)
    while left > 1e-9 and (open_ := [user for user in wanted if shares[user] < wanted[user] - 1e-9]):
        drop = min(left / len(open_), *(wanted[user] - shares[user] for user in open_), math.inf)
        for user in open_:
            shares[user] += drop
        left -= drop * len(open_)
    return shares
