"""Names that people give: what steers a terminal or is not seen is refused at the door."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from torchyard.api import JobChanges, TokenRequest
from torchyard.control_characters import check_name
from torchyard.spec import JobSpec

COMMAND = {"command": ["true", "{lr}"]}


@pytest.mark.parametrize("name", ["plain", "loss[/b]", "two words", "👩\u200d🔬 ünï 数", "表\u3000题", "a/b:c@d"])
def test_names_that_are_seen_are_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("character", list("\0\t\n\r\x1b\x7f\x85\x9b\u061c\u200e\u2028\u202e\u2066\u2069"))
def test_a_control_character_is_named(character: str) -> None:
    with pytest.raises(ValueError, match=rf"U\+{ord(character):04X}: leave it out"):
        check_name(f"a{character}b")


@pytest.mark.parametrize(
    ("model", "field", "given"),
    [
        (JobSpec, "tags.0", COMMAND | {"tags": ["a\x1b[2J"]}),
        (JobSpec, "resources.labels.0", COMMAND | {"resources": {"labels": ["a\u202e"]}}),
        (JobSpec, "checkpoint.keep_best.metric", COMMAND | {"checkpoint": {"keep_best": {"metric": "a\x9b"}}}),
        (
            JobSpec,
            "sweep.stop.metric",
            COMMAND | {"sweep": {"parameters": {"lr": [1]}, "stop": {"metric": "\n", "first": 1}}},
        ),
        (JobChanges, "tags.0", {"tags": ["a\r"]}),
        (TokenRequest, "name", {"name": "a\x07", "scopes": ["read"]}),
    ],
)
def test_the_field_and_the_mend_are_named(model: type[BaseModel], field: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(given)
    (error,) = refused.value.errors()
    assert ".".join(str(part) for part in error["loc"] if part != "list").startswith(field)
    assert "leave it out" in error["msg"]
