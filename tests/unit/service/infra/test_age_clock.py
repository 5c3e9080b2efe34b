import pytest

from service.infra.age_clock import AHEAD_US, BELIEVED_S, AgeClock
from tests.support.recorded_context import Clock

YEAR_S = 365 * 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ages(clock: Clock) -> AgeClock:
    return AgeClock(lambda: clock.us, lambda: clock.s)


def test_it_is_the_wall_clock_however_long_nobody_looks(clock: Clock, ages: AgeClock) -> None:
    for seconds in (0, 300, YEAR_S):
        clock.sleep(seconds)
        assert ages() == clock.us


def test_small_corrections_and_a_clock_that_is_set_back_count_at_once(clock: Clock, ages: AgeClock) -> None:
    for seconds in (AHEAD_US / 1e6, AHEAD_US / 1e6, -YEAR_S):
        clock.set(seconds)
        assert ages() == clock.us


def test_a_clock_that_is_set_forward_is_believed_after_a_day(
    clock: Clock, ages: AgeClock, caplog: pytest.LogCaptureFixture
) -> None:
    before = clock.us
    clock.set(YEAR_S)
    for _ in range(2):
        assert ages() == before
    clock.sleep(BELIEVED_S - 1)
    assert ages() == before + (BELIEVED_S - 1) * 1_000_000
    clock.sleep(1)
    assert ages() == clock.us
    assert [each.getMessage()[:49] for each in caplog.records] == [
        "the clock was set forward by 31536000 s: for a day"[:49]
    ]


def test_one_that_was_set_right_again_meanwhile_was_never_ahead(clock: Clock, ages: AgeClock) -> None:
    clock.set(YEAR_S)
    ages()
    clock.sleep(BELIEVED_S - 1)
    clock.set(-YEAR_S)
    assert ages() == clock.us
    before = clock.us
    clock.set(YEAR_S)
    clock.sleep(2)
    assert ages() == before + 2_000_000
