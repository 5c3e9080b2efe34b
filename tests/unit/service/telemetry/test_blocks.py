import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.telemetry.blocks import Axis, bucketed, merged, of_points, rolled_up, to_points
from tests.support.points import points

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(st.tuples(st.integers(0, 10_000), FINITE | st.just(math.nan)), min_size=1, max_size=300),
    st.integers(1, 50),
)
@example([(0, sys.float_info.max)] * 3, 1)
def test_buckets_hold_every_number_between_their_bounds(pairs: list[tuple[int, float]], count: int) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    all_points = points([step for step, _ in pairs], [value for _, value in pairs])
    buckets, rest = bucketed(of_points(all_points), Axis.STEP, (pairs[0][0], pairs[-1][0]), count)
    assert len(buckets.count) <= count
    assert all(after > before for before, after in zip(buckets.last_step, buckets.first_step[1:], strict=False))
    finite = [(step, value) for step, value in pairs if not math.isnan(value)]
    held = 0
    for n, first in enumerate(buckets.first_step):
        inside = [value for step, value in finite if first <= step <= buckets.last_step[n]]
        assert buckets.count[n] == len(inside) > 0
        assert (buckets.min[n], buckets.max[n]) == (min(inside), max(inside))
        assert buckets.min[n] <= buckets.mean[n] <= buckets.max[n]
        exact = sum(map(Fraction, inside)) / len(inside)
        assert float(exact) == pytest.approx(buckets.mean[n], rel=1e-9, abs=max(map(abs, inside)) * 1e-12)
        held += len(inside)
    assert held == len(finite)
    strange = [step for step, value in pairs if math.isnan(value)]
    assert rest.steps.tolist()[:1] == strange[:1]
    assert set(rest.steps.tolist()) <= set(strange)


def test_points_survive_as_blocks() -> None:
    before = points([1, 2, 3], [0.5, math.nan, 2.0])
    assert to_points(of_points(before)).rows() == before.rows()


def test_numbers_of_a_block_and_others_are_told_apart() -> None:
    blocks = of_points(points([3, 1, 2, 9, 8], [4.0, 2.0, math.nan, math.nan, math.nan]))
    made, groups = merged(blocks, np.array([0, 0, 0, 1, 1]))
    assert groups.tolist() == [0, 0, 1]
    names = ["special", "count", "first_step", "last_step", "least", "most", "mean"]
    assert made[names].tolist() == [(0, 2, 1, 3, 2.0, 4.0, 3.0), (1, 1, 2, 2, 0, 0, 0), (1, 2, 8, 9, 0, 0, 0)]


def test_blocks_take_over_the_lines_before_them() -> None:
    lines = np.array([3, 5, 8, 20], np.int64)
    made, _ = rolled_up(of_points(points([0, 1, 2, 3], [1.0, math.nan, 1.0, 1.0]), lines), np.arange(4) // 2, 2)
    assert made[["first_seq", "last_seq"]].tolist() == [(3, 5), (3, 5), (6, 20)]


def test_the_middle_of_a_block_counts_from_an_origin() -> None:
    blocks, _ = merged(of_points(points([10, 13], [1.0, 1.0])), np.zeros(2, np.int64))
    assert Axis.STEP.middles(blocks).tolist() == [11.5]
    assert Axis.TIME.middles(blocks, 10_000_000).tolist() == [1.5]
