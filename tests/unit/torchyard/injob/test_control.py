import pytest

import torchyard
from tests.support.attempt import AttemptFolder
from torchyard.injob import control, place
from torchyard.injob.control import CHECKPOINT, NOTHING, STOP, ControlRequest


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("request_", "served", "due", "decision"),
    [
        (None, None, False, NOTHING),
        (None, None, True, CHECKPOINT),
        (ControlRequest("checkpoint", 1), None, False, CHECKPOINT),
        (ControlRequest("checkpoint", 1), 1, False, NOTHING),
        (ControlRequest("checkpoint", 2), 1, False, CHECKPOINT),
        (ControlRequest("stop", 1), 1, False, STOP),
        (ControlRequest("stop", 1), None, True, STOP),
        (ControlRequest("dance", 1), None, False, NOTHING),
    ],
)
def test_decide(request_: ControlRequest | None, served: int | None, due: bool, decision: int) -> None:
    assert control.decide(request_, served, due) == decision


@pytest.mark.parametrize(
    ("calls", "seconds", "expected"),
    [
        (1, 0.0, 4),  # grows by at most four
        (4, 0.004, 16),
        (100, 0.3, 100),  # at the aim
        (100, 3.0, 10),  # shrinks at once
        (1, 60.0, 1),
        (4096, 0.0, 4096),
    ],
)
def test_interval_follows_the_pace(calls: int, seconds: float, expected: int) -> None:
    assert control.calls_until_poll(calls, seconds) == expected


def agreement(folder: AttemptFolder, clock: Clock, every: float | None = None) -> control.Agreement:
    return control.Agreement(place.CurrentAttempt(str(folder.root), every), clock)


def test_the_first_poll_leaves_a_mark(folder: AttemptFolder) -> None:
    assert folder.marks() == set()
    assert torchyard.should_checkpoint() is False
    assert folder.marks() == {"polled-0"}


def test_a_request_is_answered_once(folder: AttemptFolder) -> None:
    clock = Clock()
    asked = agreement(folder, clock)
    assert not asked.should_checkpoint()
    folder.ask("checkpoint", serial=1)
    assert not asked.should_checkpoint()  # not yet looked again
    clock.now += 0.31
    assert asked.should_checkpoint()
    assert asked.should_checkpoint()  # until it is taken
    asked.checkpoint_ended(committed=True)
    clock.now += 1
    assert not asked.should_checkpoint()
    folder.ask("checkpoint", serial=2)
    clock.now += 1
    assert asked.should_checkpoint()


def test_due_by_time(folder: AttemptFolder) -> None:
    clock = Clock()
    due = agreement(folder, clock, every=60)
    assert not due.should_checkpoint()
    clock.now += 61
    assert due.should_checkpoint()
    due.checkpoint_ended(committed=False)  # a failed one is tried again only when the next is due
    clock.now += 59
    assert not due.should_checkpoint()
    clock.now += 2
    assert due.should_checkpoint()


def test_a_stop_outlives_a_failed_checkpoint(folder: AttemptFolder) -> None:
    clock = Clock()
    stopped = agreement(folder, clock)
    folder.ask("stop")
    assert stopped.should_checkpoint()
    assert stopped.stopping
    stopped.checkpoint_ended(committed=False)
    assert stopped.should_checkpoint()


def test_a_stop_is_seen_while_a_checkpoint_is_pending(folder: AttemptFolder) -> None:
    clock = Clock()
    pending = agreement(folder, clock)
    folder.ask("checkpoint")
    assert pending.should_checkpoint()
    assert not pending.stopping
    folder.ask("stop", serial=2)
    clock.now += 1
    assert pending.should_checkpoint()
    assert pending.stopping


def test_a_torn_control_file_is_read_again(folder: AttemptFolder) -> None:
    path = folder.root / "control.json"
    reader = control.ControlFile(str(path))
    assert reader.read() is None
    path.write_text('{"action": "st')
    assert reader.read() is None
    folder.ask("stop", serial=4)
    assert reader.read() == ControlRequest("stop", 4)


def test_off_the_queue_it_is_false(off_the_queue: object) -> None:
    assert torchyard.should_checkpoint() is False
