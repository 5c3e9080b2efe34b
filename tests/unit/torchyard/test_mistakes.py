import pytest
from pydantic import ValidationError

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
