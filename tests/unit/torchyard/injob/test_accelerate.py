"""Whether a stop can wait for the next state of a script with Accelerate."""

import json
from pathlib import Path

import pytest

from torchyard.injob.accelerate import SaveSchedule


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ask(folder: Path, **content: object) -> str:
    path = folder / "control.json"
    path.write_text(json.dumps({"serial": 1, **content}))
    return str(path)


@pytest.mark.parametrize(
    ("every", "grace_s", "hopeless"), [(10, 60, False), (60, 30, True), (60, 80, False), (3600, 60, True)]
)
def test_a_stop_waits_for_a_state_that_is_due_in_time(
    tmp_path: Path, clock: Clock, every: float, grace_s: float, hopeless: bool
) -> None:
    saves = SaveSchedule(ask(tmp_path, action="stop", grace_s=grace_s), clock)
    assert not saves.hopeless(), "before the first state the job is stopped by a signal"
    clock.now += every
    saves.saved()
    clock.now += 1
    assert saves.hopeless() is hopeless
    clock.now += 5
    assert saves.hopeless() is hopeless, "the deadline stays where it was"


def test_what_is_no_stop_is_no_reason_to_leave(tmp_path: Path, clock: Clock) -> None:
    saves = SaveSchedule(ask(tmp_path, action="checkpoint"), clock)
    assert not saves.hopeless()
    clock.now += 3600
    saves.saved()
    clock.now += 1
    assert not saves.hopeless()
