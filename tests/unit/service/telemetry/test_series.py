import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.telemetry.series import NOTHING_COUNTS, MetricsCursor, int64, join, last_steps, thin
from tests.support.points import points


def test_rows_say_what_json_cannot() -> None:
    assert points([1, 2], [0.5, math.nan]).rows() == [(1, 1.0, 0.5), (2, 2.0, "nan")]


@pytest.mark.parametrize(
    ("number", "whole"), [(0.5, 1), (-math.inf, -(2**63)), (math.inf, 2**63 - 1), (2.0**63, 2**63 - 1), (2**62, 2**62)]
)
def test_a_bound_is_one_that_databases_hold(number: float, whole: int) -> None:
    assert int64(number, math.ceil) == whole


def test_parts_are_joined_in_order_of_steps() -> None:
    joined = join([points([1, 2, 3], [1, 2, 3]), points([3, 4], [30, 40])])
    assert joined.rows() == [(1, 1, 1), (2, 2, 2), (3, 3, 3), (3, 3, 30), (4, 4, 40)]


@pytest.mark.parametrize(
    ("resumed", "expected"),
    [
        ({1: None}, {1: None}),
        ({1: None, 2: 50}, {1: 50, 2: None}),
        ({1: None, 2: 100, 3: 50}, {1: 50, 2: 50, 3: None}),
        ({1: None, 3: 80, 2: 50}, {1: 50, 2: 80, 3: None}),
        ({1: None, 2: None}, {1: NOTHING_COUNTS, 2: None}),
    ],
)
def test_a_later_attempt_shadows_what_it_does_again(resumed: dict[int, int | None], expected: dict[int, int]) -> None:
    assert last_steps(resumed) == expected


VALUES = st.lists(st.floats(-1e9, 1e9) | st.just(math.nan), max_size=400)


@given(VALUES, st.integers(10, 60))
@example([float(n) for n in range(20)] + [math.nan] + [0.0] * 20, 10)
def test_thinning_keeps_peaks_ends_and_whether_there_was_a_nan(values: list[float], most: int) -> None:
    before = points(list(range(len(values))), values)
    after = thin(before, most)
    assert len(after) <= most or len(before) <= most
    rows, kept = before.rows(), after.rows()
    assert [row for row in rows if row in kept] == kept
    assert kept[:1] == rows[:1]
    assert kept[-1:] == rows[-1:]
    finite = [row[2] for row in rows if row[2] != "nan"]
    finite_kept = [row[2] for row in kept if row[2] != "nan"]
    assert (min(finite, default=0), max(finite, default=0)) == (
        min(finite_kept, default=0),
        max(finite_kept, default=0),
    )
    assert any(row[2] == "nan" for row in rows) == any(row[2] == "nan" for row in kept)


@given(st.integers(0, 10**6), st.dictionaries(st.integers(0, 2**62), st.integers(-1, 2**62), max_size=20))
def test_a_cursor_survives_the_journey(attempt: int, marks: dict[int, int]) -> None:
    assert MetricsCursor.parse(str(MetricsCursor(attempt, marks))) == MetricsCursor(attempt, marks)


@given(st.text(max_size=30))
def test_a_strange_cursor_is_refused_or_read_but_never_breaks(text: str) -> None:
    try:
        MetricsCursor.parse(text)
    except ValueError:
        return
