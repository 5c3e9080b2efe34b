"""How far looks for changed rows go back."""

from service.db.changefeed import BRIEF_US, Overlap

S = 1_000_000


def test_a_far_look_comes_first_and_then_once_in_a_while() -> None:
    overlap = Overlap(15 * S, 5 * S)
    backs = [overlap.back_us(second * S) for second in range(100, 111)]
    assert [second for second, back in enumerate(backs) if back == 15 * S] == [0, 5, 10]
    assert set(backs) == {15 * S, BRIEF_US}


def test_after_another_far_look_brief_ones_do() -> None:
    overlap = Overlap(15 * S, 5 * S)
    overlap.looked_far(100 * S)
    assert overlap.back_us(104 * S) == BRIEF_US
    assert overlap.back_us(105 * S) == 15 * S


def test_a_clock_that_goes_back_is_no_reason_to_miss_anything() -> None:
    overlap = Overlap(15 * S, 5 * S)
    assert overlap.back_us(100 * S) == overlap.back_us(99 * S) == 15 * S
