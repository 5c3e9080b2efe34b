"""Asynchronous successive halving: who is stopped, and that nobody ever is who should not be."""

import math
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from service.sweeps import asha
from torchyard.spec.sweeps import EarlyStopping

VALUES = st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.1, 0.2]), max_size=4)
REACHED = st.dictionaries(st.sampled_from([f"job-{n}" for n in range(12)]), VALUES)
STOPPINGS = st.builds(
    EarlyStopping,
    metric=st.just("loss"),
    mode=st.sampled_from(["min", "max"]),
    first=st.integers(1, 100),
    reduction=st.integers(2, 5),
)


def stopping(mode: Literal["min", "max"] = "min", **fields: Any) -> EarlyStopping:
    return EarlyStopping(**{"metric": "val/loss", "first": 10, "mode": mode, **fields})


def stopped(rules: EarlyStopping, reached: dict[str, list[float]], running: Any = None) -> list[str]:
    return [stop.trial for stop in asha.stops(rules, reached, reached if running is None else running)]


def test_the_best_third_goes_on() -> None:
    reached = {f"job-{n}": [float(n)] for n in range(9)}
    assert stopped(stopping(), reached) == [f"job-{n}" for n in range(3, 9)]
    assert stopped(stopping("max"), reached) == [f"job-{n}" for n in range(6)]


def test_nobody_is_stopped_before_enough_got_there() -> None:
    assert stopped(stopping(), {"a": [1.0], "b": [9.0]}) == []
    assert stopped(stopping(), {"a": [1.0], "b": [9.0], "c": [2.0]}) == ["b", "c"]


def test_each_is_measured_at_the_last_rung_that_it_reached() -> None:
    reached = {"a": [1.0, 5.0], "b": [2.0], "c": [3.0], "d": [4.0, 1.0], "e": [4.0, 2.0]}
    assert stopped(stopping(), reached) == ["a", "b", "c", "e"]


def test_those_that_are_over_count_but_are_not_stopped() -> None:
    reached = {"a": [1.0], "b": [2.0], "c": [3.0]}
    assert stopped(stopping(), reached, running=["c", "unheard"]) == ["c"]


def test_equal_ones_go_on_and_nan_does_not() -> None:
    assert stopped(stopping(), {"a": [1.0], "b": [1.0], "c": [1.0]}) == []
    assert stopped(stopping("max"), {"a": [1.0], "b": [math.nan], "c": [1.0]}) == ["b"]


def test_rungs_grow_by_the_reduction() -> None:
    assert asha.rungs(stopping(), 9) == []
    assert asha.rungs(stopping(), 270) == [10, 30, 90, 270]
    assert len(asha.rungs(stopping(), 2**63)) <= asha.MAX_RUNGS


def test_the_reason_says_what_was_compared() -> None:
    reached = {"a": [0.1, 0.1], "b": [0.2, 0.2], "c": [0.3, 0.41]}
    stop = asha.stops(stopping(), reached, ["c"])[0]
    assert asha.stop_message(stopping(), stop, 34) == (
        "stopped early at step 34: val/loss 0.41 is worse than the best third of 3 trials at rung 2 (step 30)"
    )


@given(STOPPINGS, REACHED)
def test_whoever_is_best_at_the_last_rung_that_it_reached_goes_on(
    rules: EarlyStopping, reached: dict[str, list[float]]
) -> None:
    sign = 1 if rules.mode == "min" else -1
    ended = set(stopped(rules, reached))
    for rung in range(1, 5):
        there = {trial: values for trial, values in reached.items() if len(values) >= rung}
        best = min((_loss(sign * values[rung - 1]) for values in there.values()), default=None)
        for trial, values in there.items():
            if len(values) == rung and _loss(sign * values[-1]) == best:
                assert trial not in ended


@given(STOPPINGS, REACHED)
def test_as_many_go_on_as_the_reduction_says(rules: EarlyStopping, reached: dict[str, list[float]]) -> None:
    ended = asha.stops(rules, reached, reached)
    for stop in ended:
        assert stop.among >= rules.reduction
        last = [trial for trial, values in reached.items() if len(values) == stop.rung]
        beyond = sum(len(values) > stop.rung for values in reached.values())
        survivors = len(last) + beyond - sum(each.rung == stop.rung for each in ended)
        assert survivors >= 1


@given(STOPPINGS, REACHED, st.randoms())
def test_the_order_in_which_trials_are_given_does_not_matter(
    rules: EarlyStopping, reached: dict[str, list[float]], chance: Any
) -> None:
    names = list(reached)
    chance.shuffle(names)
    shuffled = {name: reached[name] for name in names}
    assert [repr(each) for each in asha.stops(rules, reached, reached)] == [
        repr(each) for each in asha.stops(rules, shuffled, names)
    ]


def _loss(value: float) -> float:
    return math.inf if math.isnan(value) else value
