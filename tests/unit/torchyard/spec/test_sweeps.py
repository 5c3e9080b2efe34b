"""The schema of sweeps: a bound before anything is made, and complaints about the form that was meant."""

from typing import Any

import pytest
from pydantic import ValidationError

from torchyard.spec.sweeps import MAX_TRIALS, Sweep, written


def wrong(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        Sweep.model_validate(fields)
    return [(".".join(map(str, error["loc"])), error["msg"]) for error in caught.value.errors()]


def test_parameters_alone_are_a_grid() -> None:
    sweep = Sweep.model_validate({"lr": [0.1, 0.01], "seed": [1, 2, 3]})
    assert (sweep.size, sweep.combinations, sweep.trials) == (6, 6, None)
    assert Sweep.model_validate(sweep.model_dump(mode="json")) == sweep


def test_random_search_makes_as_many_as_it_says() -> None:
    sweep = Sweep.model_validate({"parameters": {"lr": {"loguniform": [1e-5, 1]}}, "trials": 20})
    assert (sweep.size, sweep.combinations) == (20, None)


def test_values_of_different_types_are_different() -> None:
    assert Sweep.model_validate({"x": [1, 1.0, True, "1"]}).size == 4


def test_so_many_trials_as_nobody_can_mean_are_refused_at_once() -> None:
    ((_, message),) = wrong(parameters={"a": {"range": [0, 10**12]}, "b": {"range": [0, 10**12]}})
    assert f"{MAX_TRIALS} are the most" in message
    assert wrong(parameters={"a": [1]}, trials=MAX_TRIALS + 1)[0][0] == "trials"
    assert "only 3 combinations" in wrong(parameters={"a": [1, 2, 3]}, trials=4)[0][1]
    assert "say how often, with trials" in wrong(a={"uniform": [0, 1]})[0][1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (3, "give a list of values"),
        ({"normal": [0, 1]}, "give a list of values"),
        ({"range": [3, 1]}, "must rise"),
        ({"integer": [1, 1]}, "must rise"),
        ({"loguniform": [0, 1]}, "greater than 0"),
        ({"uniform": [0, 1, 2]}, "at most 2 items"),
        ([1, 2, 1], "1 is listed twice"),
        ([], "at least 1 item"),
        ([[1]], "valid string"),
    ],
)
def test_complaints_are_about_the_form_that_was_meant(values: Any, words: str) -> None:
    found = wrong(a=values)
    assert all(field.startswith("parameters.a") for field, _ in found)
    assert words in found[0][1]


def test_values_are_written_as_in_json_and_texts_as_they_are() -> None:
    assert [written(value) for value in (0.1, 1e-05, 3, True, None, "a b")] == [
        "0.1",
        "1e-05",
        "3",
        "true",
        "null",
        "a b",
    ]
