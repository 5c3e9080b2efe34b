import re
from typing import get_args

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from torchyard.spec import JobSpec, error_messages


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"command": ["a"], "resources": {"gpuz": 1}}, "unknown field; did you mean gpus?"),
        ({"command": ["a"], "xyzzy": 1}, "unknown field: leave it out"),
        ({"command": ["a"], "checkpoint": {"keep_best": {}}}, "required, but absent: add it"),
        ({"command": []}, "holds too little: at least 1"),
        ({"command": "a | b"}, "no shell reads | here: write [sh, -c, 'all of it in quotes']"),
        (
            {"command": "a 'b"},
            '"a \'b" cannot be split into words (No closing quotation): write a list, [program, argument]',
        ),
        ({"command": {"a": 1}}, '{"a": 1} is not a list: write [a, b]'),
        ({"command": ["a"], "env": ["A=1"]}, '["A=1"] is not a mapping: write `env: {NAME: value}`'),
        ({"command": ["a"], "env": {"A": None}}, "nothing is not text: put it in quotes"),
        ({"command": ["a"], "tags": "x"}, '"x" is not a list: write [x]'),
        ({"command": ["a"], "tags": "\ud800"}, '"\\ud800" is not a list: write [\\ud800]'),
        ({"command": ["a"], "env": ["\ud800"]}, '["\\ud800"] is not a mapping: write `env: {NAME: value}`'),
        (
            {"command": ["a"], "checkpoint": "10m"},
            '"10m" is not a mapping: write `checkpoint: {…}` with some of every, keep_last, keep_best',
        ),
        ({"command": ["a"], "resources": {"gpus": "many"}}, '"many" is not a whole number: write one, such as 2'),
        ({"command": ["a"], "resources": {"gpus": -1}}, "-1 is too small: the least is 0"),
        ({"command": ["a"], "max_retries": 1000}, "1000 is too large: the most is 100"),
        ({"command": ["a"], "preemptible": "perhaps"}, '"perhaps" is neither true nor false: write one of them'),
        ({"command": ["a"], "hang": {"action": "kill"}}, "\"kill\" is not known here: take 'stop' or 'show'"),
        (
            {"command": ["a"], "name": "a b"},
            "\"a b\" is not a name: take letters, digits, '.', '_' and '-', a letter or digit first, "
            "at most 63 of them",
        ),
        ({}, "give either a recipe (the built-in trainer) or a command"),
    ],
)
def test_a_mistake_names_its_mend(spec: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate(spec)
    assert error_messages.message(caught.value.errors()[0], JobSpec) == words


WRONG = ["x", 3, -1, 1.5, None, True, [], ["x"], [None], {}, {"x": 1}, "x" * 100, object()]


def test_a_mapping_whose_fields_are_not_known_lists_none() -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"command": ["a"], "checkpoint": "10m"})
    told = error_messages.message(caught.value.errors()[0], None)
    assert told == '"10m" is not a mapping: write `checkpoint: {NAME: value}`'


@pytest.mark.parametrize("field", sorted(JobSpec.model_fields))
def test_no_field_is_complained_of_in_the_words_of_python(field: str) -> None:
    for value in WRONG:
        for given in (value, *({inner: value} for inner in _inner(field))):
            try:
                JobSpec.model_validate({"command": ["a"], field: given})
            except ValidationError as error:
                told = [error_messages.message(each, JobSpec) for each in error.errors()]
                assert not [
                    text for text in told if re.search(r"Input should|valid tuple|dictionary|String should", text)
                ]
                assert all(len(text) < 400 for text in told)


def _inner(field: str) -> list[str]:
    models = [JobSpec.model_fields[field].annotation, *get_args(JobSpec.model_fields[field].annotation)]
    return [name for model in models for name in getattr(model, "model_fields", ())]


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    weight: float = 1


class Outer(BaseModel):
    by_name: dict[str, Inner] = {}
    in_order: list[Inner] = []


@pytest.mark.parametrize("given", [{"by_name": {"ada": {"wheight": 2}}}, {"in_order": [{"wheight": 2}]}])
def test_names_are_known_inside_of_mappings_and_lists(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    assert error_messages.message(caught.value.errors()[0], Outer) == "unknown field; did you mean weight?"
