import pytest

from service.jobs import body
from service.problems import ProblemError

YAML = "application/yaml; charset=utf-8"


def test_yaml_and_json_are_the_same() -> None:
    assert body.parse(b"{name: a, command: [x]}", YAML) == body.parse(b'{"name": "a", "command": ["x"]}', "")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_refused_before_the_loader_sees_it(opening: str) -> None:
    with pytest.raises(ProblemError, match="nested too deeply"):
        body.parse(opening.encode() * 100_000, YAML)


def test_a_short_text_cannot_become_endless() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(ProblemError, match="line 2, column 10: aliases"):
        body.parse("\n".join(lines).encode(), YAML)


def test_every_wrong_field_is_named() -> None:
    with pytest.raises(ProblemError) as caught:
        body.check({"command": [], "launcher": "torchrum", "resources": {"gpus": "two"}, "prioritty": "low"})
    fields = {error.field: error.message for error in caught.value.errors}
    assert set(fields) == {"command", "launcher", "resources.gpus", "prioritty"}
    assert fields["prioritty"] == "unknown field; did you mean priority?"
    assert caught.value.detail.count(";") >= 2


def test_a_stranger_without_a_likeness_is_to_be_left_out() -> None:
    with pytest.raises(ProblemError, match="xyzzy: unknown field: leave it out"):
        body.check({"command": ["x"], "xyzzy": 1})


def test_texts_that_no_program_can_take() -> None:
    with pytest.raises(ProblemError) as caught:
        body.parse(b'{"env": {"A": "\\u0000"}, "command": ["\\ud800"], "ok": "\\ud83d\\ude00"}', "application/json")
    assert {error.field for error in caught.value.errors} == {"env.A", "command.0"}
