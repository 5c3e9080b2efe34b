"""Which steps are reported."""

from collections.abc import Sequence
from itertools import pairwise

from trainer.loop.log_interval import MAX_STEPS, LogInterval


def reported(interval: LogInterval, step_seconds: Sequence[float]) -> list[int]:
    """Steps that are reported, when they take so long one after the other."""
    found = []
    since = 0.0
    last = 0
    for step, seconds in enumerate(step_seconds, start=1):
        due, since = interval.due(step), since + seconds
        if due:
            interval.reported(since / (step - last))
            found.append(step)
            since, last = 0.0, step
    return found


def test_every_so_many_steps_are_those_of_the_whole_run() -> None:
    resumed = LogInterval(3)
    assert [step for step in range(5, 13) if resumed.due(step)] == [6, 9, 12]


def test_without_a_number_it_is_about_one_a_second() -> None:
    found = reported(LogInterval(None), [1 / 64] * 300)
    assert found == [1, 3, 7, 15, 31, 63, 127, 191, 255]


def test_long_steps_are_all_reported() -> None:
    assert reported(LogInterval(None), [3.0] * 5) == [1, 2, 3, 4, 5]


def test_the_first_step_is_no_measure_of_the_others() -> None:
    assert reported(LogInterval(None), [60.0] + [0.02] * 20) == [1, 2, 4, 8, 16]


def test_a_training_that_becomes_slow_is_heard_of_again_and_then_at_each_step() -> None:
    quick = [1e-4] * 2000
    found = reported(LogInterval(None), quick + [2.0] * 300)
    assert max(later - step for step, later in pairwise(found)) == MAX_STEPS
    first_slow = next(step for step in found if step > len(quick))
    assert found[found.index(first_slow) :] == list(range(first_slow, 2301))
