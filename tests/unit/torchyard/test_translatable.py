from typing import Any

from torchyard.api import FieldProblem
from torchyard.translatable import TranslatableText, joined, of_error, parts, placeholders

SMALL = TranslatableText("at-least", "{given!r} is too small: the least is {ge}", given="-1", ge=0)


def test_it_is_text() -> None:
    assert SMALL == "'-1' is too small: the least is 0"
    assert TranslatableText("one-of", "take {names}", names=("a", "b")) == "take a, b"


def test_it_knows_what_it_is_made_of_messages_within_it_too() -> None:
    assert parts(SMALL) == {"code": "at-least", "params": {"given": "-1", "ge": 0}}
    mistake = {"message": str(SMALL), **parts(SMALL)}
    assert parts(TranslatableText("or-never", "{mistake}, or never", mistake=SMALL))["params"] == {"mistake": mistake}
    assert parts("plain") == {"code": None, "params": {}}


def test_a_wrong_field_has_the_parts_of_its_message() -> None:
    problem = FieldProblem(
        field="resources.gpus", message=TranslatableText("or-never", "{mistake}, or never", mistake=SMALL)
    )
    read = FieldProblem.model_validate_json(problem.model_dump_json())
    assert read == problem
    assert read.code == "or-never"
    assert FieldProblem(field="name", message="wrong").code is None


def test_sentences_are_one_message_that_nests_little() -> None:
    many = [TranslatableText("lacks", "{node} has none", node=str(number)) for number in range(1000)]
    message = joined(many)
    assert message == "; ".join(many)
    assert joined(many[:1]) is many[0]
    assert deepest(parts(message)) == 11
    assert FieldProblem(field="resources", message=message).code == "sentences"


def deepest(part: dict[str, Any]) -> int:
    return 1 + max((deepest(each) for each in part["params"].values() if isinstance(each, dict)), default=0)


def test_an_error_gives_back_the_message_that_it_was_made_with() -> None:
    assert of_error(ValueError(SMALL)) is SMALL
    assert of_error(ValueError("plain")) == "plain"


def test_placeholders_are_named_once_and_braces_are_none() -> None:
    assert placeholders("{{name: {a}}} {b!r} {a}") == {"a", "b"}
