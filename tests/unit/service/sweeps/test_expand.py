"""From a spec with a sweep to the specs of its trials; complaints name the parameter, the value and the mend."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.errors import ProblemError
from service.jobs import body
from service.sweeps import expand
from torchyard.spec import JobSpec


def trials(**fields: Any) -> list[expand.Trial]:
    return list(expand.trials(JobSpec.model_validate(fields)))


def recipe(sweep: dict[str, Any], **options: Any) -> list[expand.Trial]:
    return trials(name="digits-cnn", recipe={"model": "digits_cnn", **options}, sweep=sweep)


def command(sweep: dict[str, Any], *words: str, **fields: Any) -> list[expand.Trial]:
    return trials(command=["train.py", *words], sweep=sweep, **fields)


def complaints(wrong: Any) -> list[tuple[str, str]]:
    with pytest.raises(ProblemError) as caught:
        wrong()
    assert caught.value.kind == "invalid-request"
    return [(each.field, each.message) for each in caught.value.errors]


def test_each_trial_is_a_whole_spec_of_its_own() -> None:
    made = recipe({"lr": [0.1, 0.01], "recipe.seed": [1, 2]})
    assert [(each.number, each.spec.name) for each in made] == [(n, f"digits-cnn-{n}") for n in (1, 2, 3, 4)]
    assert all(each.spec.sweep is None for each in made)
    found = [each.spec.recipe for each in made if each.spec.recipe]
    assert [(each.optim.lr, each.seed) for each in found] == [(0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2)]
    assert made[2].parameters == {"lr": 0.01, "recipe.seed": 1}
    assert json.loads(made[2].spec.env["TORCHYARD_PARAMETERS"]) == made[2].parameters
    assert JobSpec.model_validate(made[2].spec.model_dump(mode="json")) == made[2].spec


def test_paths_reach_everything_that_a_trial_may_have_of_its_own() -> None:
    (made,) = command({"resources.gpus": [2], "time_limit": ["1h"], "env.LR": [0.5], "checkpoint.keep_last": [7]})
    spec = made.spec
    assert (spec.resources.gpus, spec.time_limit, spec.env["LR"], spec.checkpoint.keep_last) == (2, 3600, "0.5", 7)


def test_an_option_belongs_to_the_noun_that_the_trial_has_chosen() -> None:
    made = recipe({"recipe.optim.lr": [1, 2], "recipe.optim": ["adam", "sgd"]})
    found = [(each.spec.recipe.optim.name, each.spec.recipe.optim.lr) for each in made if each.spec.recipe]
    assert found == [("adam", 1), ("sgd", 1), ("adam", 2), ("sgd", 2)]


def test_a_swept_batch_size_takes_the_place_of_the_other_kind() -> None:
    made = recipe({"global_batch_size": [32, 64]}, batch_size=16)
    assert [each.spec.recipe.global_batch_size for each in made if each.spec.recipe] == [32, 64]


def test_names_in_braces_are_filled_and_other_braces_stay() -> None:
    words = ("--lr={lr}", "{flag}", '{"a": {b: 1}}', "{{lr}}", "{ lr }")
    made = command({"lr": [1e-05], "flag": [True]}, *words)
    assert made[0].spec.command == ("train.py", "--lr=1e-05", "true", '{"a": {b: 1}}', "{lr}", "{ lr }")


def test_long_names_keep_their_number() -> None:
    made = trials(name="x" * 63, command=["a"], sweep={"time_limit": {"range": [1, 101]}})
    assert made[-1].spec.name == "x" * 59 + "-100"


def test_a_key_that_is_found_twice_names_both_places() -> None:
    nouns = {noun: {"name": "custom", "target": "my:thing", "options": {"width": 8}} for noun in ("model", "data")}
    ((field, message),) = complaints(lambda: trials(recipe=nouns, sweep={"width": [16]}))
    assert field == "sweep.parameters.width"
    bindings = "recipe.model.options.width or recipe.data.options.width"
    assert message == f"is found 2 times in the recipe: write which, {bindings}"
    (made,) = trials(recipe=nouns, sweep={"recipe.data.options.width": [16]})
    assert made.spec.recipe
    assert made.spec.recipe.data.options == {"width": 16}


@pytest.mark.parametrize(
    ("sweep", "field", "words"),
    [
        ({"lrr": [1]}, "sweep.parameters.lrr", "did you mean lr?"),
        ({"recipe.optim.momentum": [0.5]}, "sweep.parameters.recipe.optim.momentum", "is no path into this spec"),
        ({"lr": [0.1, -1]}, "sweep.parameters.lr", "-1 does not work: -1 is too small: it must be greater than 0"),
        ({"name": ["a"]}, "sweep.parameters.name", "belongs to all trials together"),
        ({"priority": ["urgent"]}, "sweep.parameters.priority", "belongs to all trials together"),
        ({"sweep.seed": [1]}, "sweep.parameters.sweep.seed", "belongs to all trials together"),
        (
            {"accumulate": [3], "global_batch_size": [64]},
            "sweep.parameters",
            "trial 1 (accumulate 3, global_batch_size",
        ),
        (
            {"recipe.optim": ["adam", "lion"]},
            "sweep.parameters.recipe.optim",
            "lion does not work: 'lion' is not known",
        ),
    ],
)
def test_what_is_wrong_is_named(sweep: dict[str, Any], field: str, words: str) -> None:
    ((found, message),) = complaints(lambda: recipe(sweep))
    assert found == field
    assert words in message


def test_every_wrong_name_of_a_command_is_named_with_its_mend() -> None:
    found = dict(complaints(lambda: command({"lr": [1], "resources.gpuss": [2]}, "--lr", "{rate}")))
    assert "write {lr} in an argument" in found["sweep.parameters.lr"]
    assert "there is {rate}" in found["sweep.parameters.lr"]
    assert "resources.gpus" in found["sweep.parameters.resources.gpuss"]
    assert "write {{rate}} for the braces themselves" in found["command"]


def test_the_example_is_a_sweep() -> None:
    text = (Path(__file__).parents[4] / "examples/sweep.yaml").read_text()
    spec = body.check(body.parse(text.encode(), "application/yaml"))
    made = list(expand.trials(spec))
    assert len(made) == 12
    assert len({each.parameters["lr"] for each in made}) == 12
    assert {each.spec.recipe.strategy.name for each in made if each.spec.recipe} == {"single"}
