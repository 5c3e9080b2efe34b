import pytest

from service.errors import ProblemError
from service.jobs import body

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


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (f"resources: {{cpus: 0x{'f' * 5000}}}", "resources.cpus", "64 bits"),
        (f"0x{'f' * 1000}: 1", "(body)", "a name that must fit into 64 bits"),
        ("recipe: {optim: {lr: .nan}}", "recipe.optim.lr", "finite"),
        ("time_limit: 1" + ":1" * 100_000, "(body)", "column 13: no number is that long"),
        ("time_limit: 1" + ":1" * 200 + ".5", "(body)", "no number is that long"),
        ("tags: [!!binary AAA=]", "(body)", "column 8: tags (tag:yaml.org,2002:binary) are not read here"),
        ("held: !!bool x", "(body)", "are not read here"),
        ('time_limit: !!int ""', "(body)", "are not read here"),
        ('command: !!set {"a\\0"}', "(body)", "are not read here"),
        ('command: ["a\\0"]', "command.0", "NUL"),
    ],
)
def test_values_that_nothing_can_hold(text: str, field: str, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        body.parse(text.encode(), YAML)
    (complaint,) = caught.value.errors
    assert complaint.field == field
    assert message in complaint.message


def test_depth_is_refused_in_json_too() -> None:
    with pytest.raises(ProblemError, match="nested too deeply"):
        body.parse(b'{"a":' * 40 + b"1" + b"}" * 40, "application/json")


def test_complaints_are_bounded() -> None:
    with pytest.raises(ProblemError) as caught:
        body.check({f"field{number}": 1 for number in range(20_000)})
    assert len(caught.value.errors) == body.MAX_COMPLAINTS


@pytest.mark.parametrize("tag", ["", "x" * 101])
def test_tags_are_short(tag: str) -> None:
    with pytest.raises(ProblemError, match=r"tags\.0"):
        body.check({"command": ["x"], "tags": [tag]})
