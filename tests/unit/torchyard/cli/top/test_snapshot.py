"""The choice among jobs that come and go."""

from types import SimpleNamespace
from typing import Any

from torchyard.cli.top.snapshot import Selection


def rows(*jobs: str) -> list[Any]:
    return [SimpleNamespace(job=job) for job in jobs]


def test_the_choice_stays_with_its_job_and_else_in_its_place() -> None:
    chosen = Selection().moved(rows("a", "b", "c"), 1)
    assert chosen.job == "b"
    assert chosen.among(rows("new", "a", "b", "c")) == Selection(job="b", place=2)
    assert chosen.among(rows("a", "c")).job == "c"
    assert chosen.among(rows("a")).job == "a"
    assert chosen.among([]).job is None


def test_the_choice_does_not_leave_the_list() -> None:
    assert Selection().moved(rows("a", "b"), -1).job == "a"
    assert Selection().moved(rows("a", "b"), 9).job == "b"
    assert Selection().moved([], 1) == Selection()
