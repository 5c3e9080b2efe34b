import pytest

from worker.exceptions import RefusedError, UnavailableError
from worker.forward.lane import Lane, drained, pause, run_all


class Pump:
    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.more = False

    def __call__(self) -> bool:
        self.calls += 1
        if self.error:
            raise self.error
        return self.more


def test_a_lane_is_drained_when_nothing_more_waits() -> None:
    pump = Pump()
    lane = Lane("logs", pump)
    pump.more = True
    lane.run(0)
    assert not drained([lane])
    assert pause([lane], 0) == 0
    pump.more = False
    lane.run(0)
    assert drained([lane])


def test_an_absent_service_is_asked_again_soon_and_then_every_five_seconds() -> None:
    pump = Pump()
    lane = Lane("logs", pump)
    pump.error = UnavailableError()
    now, waits = 0.0, []
    for _ in range(10):
        lane.run(now)
        waits.append(lane.due - now)
        lane.run(lane.due - 0.01)
        now = lane.due
    assert pump.calls == 10
    assert 0.1 <= waits[0] <= 0.2
    assert 2.5 <= waits[-1] <= 5
    pump.error = None
    lane.run(now)
    pump.error = UnavailableError()
    lane.run(now)
    assert lane.due - now <= 0.2


def test_a_refusal_is_asked_again_rarely() -> None:
    pump = Pump()
    lane = Lane("logs", pump)
    pump.error = RefusedError(404, {}, "POST logs")
    lane.run(0)
    assert 2.5 <= lane.due <= 5


def test_a_full_disk_is_waited_for() -> None:
    pump = Pump()
    lane = Lane("logs", pump)
    pump.error = OSError(28, "No space left on device")
    lane.run(0)
    assert not lane.drained
    pump.error = None
    lane.run(lane.due)
    assert lane.drained


def test_a_fault_of_ours_holds_up_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = Pump(), Pump()
    broken.error = KeyError("marks")
    lanes = [Lane("metrics", broken), Lane("result", sound)]
    run_all(lanes, 0)
    assert [lane.drained for lane in lanes] == [False, True]
    assert lanes[0].due >= 2.5
    assert "a fault in TorchYard" in caplog.text
