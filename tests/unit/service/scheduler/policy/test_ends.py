import math

import pytest

from service.scheduler.model.jobs import Estimate, EstimateSource
from service.scheduler.policy.ends import Quantile, end_us
from tests.unit.service.scheduler.worlds import running


def left(as_of_us: int | None = None) -> Estimate:
    return Estimate(p10_us=10, p50_us=50, p90_us=90, source=EstimateSource.PROGRESS, as_of_us=as_of_us)


def test_nothing_tells_but_the_limit() -> None:
    assert end_us(running(1, "a0"), "p50_us", 1000) == math.inf
    assert end_us(running(1, "a0", ends_us=1200), "p50_us", 1000) == 1200


@pytest.mark.parametrize(("quantile", "end"), [("p50_us", 1050), ("p90_us", 1090)])
def test_an_estimate_counts_from_when_it_was_made(quantile: Quantile, end: int) -> None:
    assert end_us(running(1, "a0", remaining=left()), quantile, 1000) == end
    assert end_us(running(1, "a0", remaining=left(as_of_us=980)), quantile, 1000) == end - 20


def test_a_job_that_should_be_over_is_over_at_the_earliest_moment_unless_its_limit_comes_first() -> None:
    late = running(1, "a0", remaining=left(as_of_us=0), ends_us=1200)
    assert end_us(late, "p50_us", 1000) == 50
    assert end_us(late, "p50_us", 1000, earliest_us=1010) == 1010
    assert end_us(late, "p50_us", 1300, earliest_us=1310) == 1200
