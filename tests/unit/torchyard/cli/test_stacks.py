"""`yard stacks` against a client of the test's own."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.resources import job
from torchyard.api import Job, Stacks
from torchyard.cli import stacks
from torchyard.wire import Frame, ProcessStack, ThreadStack

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROCESS = ProcessStack(
    pid=8,
    rank=1,
    main=True,
    command="python train.py",
    threads=[
        ThreadStack(name="MainThread", frames=[Frame(function="all_reduce", file="c10d.py", line=3913)]),
        ThreadStack(name="pin", frames=[Frame(function="do_one_step", file="pin_memory.py", line=30)]),
    ],
)


def dump(serial: int, **fields: Any) -> Stacks:
    about = {"attempt": 1, "node": "box", "node_rank": 0, "at": AT, "summary": f"look {serial}", "left_out": 0}
    return Stacks.model_validate(about | {"serial": serial, "processes": [PROCESS]} | fields)


class Fake:
    """A service whose node sends its stacks with the third look after they were asked for."""

    def __init__(self) -> None:
        self.found, self.asked, self.looks = [dump(1)], False, 0

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask_for_stacks(self, _: str) -> Job:
        self.asked = True
        return job()

    def stacks(self, _: str) -> list[Stacks]:
        self.looks += 1
        return [dump(2), *self.found] if self.asked and self.looks > 3 else self.found


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(stacks.common, "connect", lambda: made)
    monkeypatch.setattr(stacks, "PAUSE_S", 0.0)
    return made


def test_the_last_stacks_are_shown_without_asking(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    stacks.stacks("7")
    shown = capsys.readouterr().out
    assert "look 1" in shown
    assert "all_reduce (c10d.py:3913)" in shown
    assert "pin_memory.py" not in shown
    assert not fake.asked


def test_now_waits_for_those_that_come(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    stacks.stacks("7", now=True, full=True)
    shown = capsys.readouterr().out
    assert "look 2" in shown
    assert "look 1" not in shown
    assert "do_one_step (pin_memory.py:30)" in shown


def test_without_any_the_way_to_get_them_is_told(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.found = []
    stacks.stacks("7")
    assert "`yard stacks --now JOB`" in capsys.readouterr().err
