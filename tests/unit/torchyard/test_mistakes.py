import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from torchyard import mistakes
from torchyard.spec import JobSpec


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"command": ["a"], "resources": {"gpuz": 1}}, "unknown field; did you mean gpus?"),
        ({"command": ["a"], "xyzzy": 1}, "unknown field: leave it out"),
        ({"command": ["a"], "checkpoint": {"keep_best": {}}}, "required, but absent: add it"),
        ({}, "give either a recipe (the built-in trainer) or a command"),
    ],
)
def test_a_mistake_names_its_mend(spec: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate(spec)
    assert mistakes.message(caught.value.errors()[0], JobSpec) == words


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
    assert mistakes.message(caught.value.errors()[0], Outer) == "unknown field; did you mean weight?"
