"""The values of trials: every combination once, chance within its bounds, and the same again for the same seed."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.sweeps import sampling
from torchyard.spec.sweeps import Sweep


def sweep(**fields: Any) -> Sweep:
    return Sweep.model_validate(fields)


LISTS = st.lists(st.integers(-5, 5), min_size=1, max_size=4, unique=True)
LOW = st.floats(1e-6, 1.0)


@given(st.dictionaries(st.sampled_from("abc"), LISTS, min_size=1))
def test_a_grid_is_every_combination_once(parameters: dict[str, list[int]]) -> None:
    drawn = sampling.parameters(sweep(parameters=parameters))
    expected = [dict(zip(parameters, each, strict=True)) for each in itertools.product(*parameters.values())]
    assert drawn == expected


def test_the_last_parameter_changes_first_and_ranges_are_listed() -> None:
    drawn = sampling.parameters(sweep(parameters={"lr": [0.1, 0.01], "seed": {"range": [3, 5]}}))
    assert [tuple(each.values()) for each in drawn] == [(0.1, 3), (0.1, 4), (0.01, 3), (0.01, 4)]


@given(low=LOW, factor=st.floats(1.5, 1e5), seed=st.integers(), trials=st.integers(1, 50))
def test_draws_keep_within_their_bounds_and_repeat(low: float, factor: float, seed: int, trials: int) -> None:
    high = low * factor
    wanted = sweep(
        parameters={
            "u": {"uniform": [-high, high]},
            "l": {"loguniform": [low, high]},
            "i": {"integer": [-2, 3]},
            "r": {"range": [0, 4]},
            "w": ["a", None, True],
        },
        trials=trials,
        seed=seed,
    )
    drawn = sampling.parameters(wanted)
    assert len(drawn) == trials
    assert drawn == sampling.parameters(wanted)
    for each in drawn:
        assert -high <= each["u"] <= high  # type: ignore[operator]
        assert low <= each["l"] <= high  # type: ignore[operator]
        assert each["i"] in range(-2, 4)
        assert each["r"] in range(4)
        assert each["w"] in ("a", None, True)


def test_orders_of_magnitude_are_as_likely() -> None:
    drawn = sampling.parameters(sweep(parameters={"lr": {"loguniform": [1e-4, 1.0]}}, trials=2000))
    small = sum(each["lr"] < 1e-2 for each in drawn)  # type: ignore[operator]
    assert 900 < small < 1100


@given(seed=st.integers(), trials=st.integers(1, 12))
def test_what_can_be_counted_is_drawn_without_repetition(seed: int, trials: int) -> None:
    drawn = sampling.parameters(sweep(parameters={"a": [1, 2, 3], "b": {"range": [0, 4]}}, trials=trials, seed=seed))
    assert len({json.dumps(each) for each in drawn}) == trials


def test_another_seed_draws_others() -> None:
    first, second = (
        sampling.parameters(sweep(parameters={"lr": {"uniform": [0, 1]}}, trials=5, seed=seed)) for seed in (0, 1)
    )
    assert first != second


def test_drawn_numbers_are_short_enough_to_read() -> None:
    drawn = sampling.parameters(sweep(parameters={"lr": {"uniform": [0, 1]}}, trials=100))
    assert all(float(f"{each['lr']:.6g}") == each["lr"] for each in drawn)


def test_a_range_may_be_too_long_to_list() -> None:
    (drawn,) = sampling.parameters(sweep(parameters={"seed": {"range": [-(2**62), 2**62]}}, trials=1))
    assert -(2**62) <= drawn["seed"] < 2**62
