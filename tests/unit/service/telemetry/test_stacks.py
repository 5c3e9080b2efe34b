"""What stacks say in words."""

import pytest

from service.telemetry import stacks
from torchyard import wire


def process(rank: int, **fields: str) -> wire.ProcessStack:
    return wire.ProcessStack(pid=rank + 100, rank=rank, main=True, command="x", **fields)


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        ([], ""),
        ([process(0)], "rank 0 is in native code"),
        ([process(2, error="no py-spy")], "rank 2 cannot be read: no py-spy"),
        (
            [process(0, doing="load", place="a.py:1"), *(process(n, collective="barrier") for n in (3, 1, 2))],
            "rank 0 is in load (a.py:1); ranks 1, 2, 3 wait in barrier",
        ),
        ([process(n, doing="f") for n in range(12)], "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more are in f"),
        ([process(0, doing="f"), process(0, doing="g").model_copy(update={"main": False})], "rank 0 is in f"),
    ],
)
def test_words(processes: list[wire.ProcessStack], words: str) -> None:
    assert stacks.summary(processes) == words


def test_what_the_words_are_made_of() -> None:
    alike = [process(n, doing="f") for n in range(stacks.MAX_NAMED + 4)]
    groups = stacks.groups([process(12, collective="barrier", place="a.py:1"), *alike])
    assert [(group["ranks"], group["more"]) for group in groups] == [([0, 1, 2, 3, 4, 5, 6, 7], 4), ([12], 0)]
    assert (groups[1]["collective"], groups[1]["place"], groups[1]["error"]) == ("barrier", "a.py:1", None)
