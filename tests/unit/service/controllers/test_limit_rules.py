"""When a run hangs or idles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.controllers import limit_rules
from service.controllers.limit_rules import Idleness
from torchyard.spec import HangPolicy

SECOND = 1_000_000
POLICY = HangPolicy(after=300, factor=20)


def reports(*times: float, every: int = 1) -> list[tuple[int, int]]:
    """A report each `every` steps, at these seconds."""
    return [(every * number, round(time * SECOND)) for number, time in enumerate(times)]


def test_without_two_steps_nothing_is_known_but_the_least_patience() -> None:
    assert limit_rules.median_step_us([]) is limit_rules.median_step_us(reports(1)) is None
    assert limit_rules.patience_s(POLICY, reports(1)) == 300


def test_the_median_does_not_mind_a_long_first_step() -> None:
    assert limit_rules.median_step_us(reports(0, 100, 101, 102, 103, 104)) == SECOND


def test_steps_between_reports_and_steps_reported_again() -> None:
    assert limit_rules.median_step_us(reports(0, 10, 20, every=10)) == SECOND
    assert limit_rules.median_step_us([(5, 0), (5, SECOND), (6, 3 * SECOND), (2, 4 * SECOND)]) == 2 * SECOND


def test_slow_steps_have_more_patience() -> None:
    assert limit_rules.patience_s(POLICY, reports(0, 1, 2)) == 300
    assert limit_rules.patience_s(POLICY, reports(0, 60, 120)) == 1200


def test_rare_reports_have_the_time_of_two() -> None:
    assert limit_rules.patience_s(POLICY, reports(0, 1000, 2000, every=1000)) == 2000


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10**9)), max_size=20))
def test_no_run_hangs_before_its_policy_says(points: list[tuple[int, int]]) -> None:
    assert limit_rules.patience_s(POLICY, points) >= 300


@pytest.mark.parametrize(
    ("values", "gpus", "busy"),
    [
        ({"gpu.0.utilization": 0.0, "gpu.1.utilization": 0.0, "cpu.percent": 900.0}, True, False),
        ({"gpu.0.utilization": 0.0, "gpu.1.utilization": 35.0}, True, True),
        ({"gpu.0.memory_used": 1.0, "cpu.percent": 100.0}, True, None),
        ({"cpu.percent": 1.0}, False, False),
        ({"cpu.percent": 99.0}, False, True),
        ({"memory.used": 1.0}, False, None),
    ],
)
def test_what_counts_as_work(values: dict[str, float], gpus: bool, busy: bool | None) -> None:
    assert limit_rules.busy(values, gpus=gpus) is busy


def test_idleness_lasts_until_it_works_again() -> None:
    idle = Idleness(newest_us=0)
    for second, lasts in ((2, 0), (4, 2), (6, 4)):
        idle = idle.after(second * SECOND, False)
        assert idle.lasts_s == lasts
    assert idle.after(8 * SECOND, True).lasts_s == 0
    assert idle.after(8 * SECOND, None).lasts_s == 0


def test_a_hole_in_the_samples_is_no_idleness() -> None:
    idle = Idleness(newest_us=0, since_us=0).after(61 * SECOND, False)
    assert idle.lasts_s == 0


def test_a_moment_by_the_monotonic_clock_is_never_to_come() -> None:
    assert limit_rules.monotonic_at(10_000_000, 12_500_000, 100.0) == 97.5
    assert limit_rules.monotonic_at(3_600_000_000, 12_500_000, 100.0) == 100.0
