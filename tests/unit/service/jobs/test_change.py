import pytest

from service.errors import ProblemError
from service.jobs import change, versions


def test_merge_patch() -> None:
    spec = {"name": "a", "env": {"A": "1", "B": "2"}, "time_limit": 60}
    assert change.merge(spec, {"env": {"A": None, "C": "3"}, "time_limit": None, "tags": ["x"]}) == {
        "name": "a",
        "env": {"B": "2", "C": "3"},
        "tags": ["x"],
    }
    assert change.merge({"recipe": None}, {"recipe": {"epochs": 2}}) == {"recipe": {"epochs": 2}}
    assert spec["env"] == {"A": "1", "B": "2"}


def test_changes_are_named_below_changes() -> None:
    with pytest.raises(ProblemError) as caught:
        change.changed_spec({"command": ["x"]}, {"resources": {"gpu": 1}})
    assert [error.field for error in caught.value.errors] == ["changes.resources.gpu"]


@pytest.mark.parametrize("header", ['"3.abc"', 'W/"3.abc"', "*", '"1.x", "3.y"', '"3"'])
def test_the_version_is_what_counts(header: str) -> None:
    versions.check_match(header, 3)


@pytest.mark.parametrize("header", ['"33.abc"', '"2.abc"', "", '"abc"'])
def test_other_versions_do_not(header: str) -> None:
    with pytest.raises(ProblemError) as caught:
        versions.check_match(header, 3)
    assert caught.value.kind == "precondition-failed"
