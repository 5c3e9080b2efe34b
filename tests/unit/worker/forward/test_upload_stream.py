import pytest

from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward.upload_stream import UploadStream, drained, pause, run_all


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
    stream = UploadStream("logs", pump)
    pump.more = True
    stream.run(0)
    assert not drained([stream])
    assert pause([stream], 0) == 0
    pump.more = False
    stream.run(0)
    assert drained([stream])


def test_an_absent_service_is_asked_again_soon_and_then_every_five_seconds() -> None:
    pump = Pump()
    stream = UploadStream("logs", pump)
    pump.error = UnavailableError()
    now, waits = 0.0, []
    for _ in range(10):
        stream.run(now)
        waits.append(stream.due - now)
        stream.run(stream.due - 0.01)
        now = stream.due
    assert pump.calls == 10
    assert 0.1 <= waits[0] <= 0.2
    assert 2.5 <= waits[-1] <= 5
    pump.error = None
    stream.run(now)
    pump.error = UnavailableError()
    stream.run(now)
    assert stream.due - now <= 0.2


def test_a_refusal_is_asked_again_rarely() -> None:
    pump = Pump()
    stream = UploadStream("logs", pump)
    pump.error = RequestRefusedError(404, {}, "POST logs")
    stream.run(0)
    assert 2.5 <= stream.due <= 5


def test_a_full_disk_is_waited_for() -> None:
    pump = Pump()
    stream = UploadStream("logs", pump)
    pump.error = OSError(28, "No space left on device")
    stream.run(0)
    assert not stream.drained
    pump.error = None
    stream.run(stream.due)
    assert stream.drained


def test_a_fault_of_ours_holds_up_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = Pump(), Pump()
    broken.error = KeyError("marks")
    streams = [UploadStream("metrics", broken), UploadStream("result", sound)]
    run_all(streams, 0)
    assert [stream.drained for stream in streams] == [False, True]
    assert streams[0].due >= 2.5
    assert "a fault in TorchYard" in caplog.text


def test_it_is_known_since_when_a_fault_of_ours_lasts() -> None:
    pump = Pump()
    stream = UploadStream("metrics", pump)
    pump.error = KeyError("marks")
    stream.run(7)
    stream.run(100)
    assert (stream.faulty_since, stream.said) == (7, "'marks'")
    pump.error = UnavailableError()
    stream.run(200)
    assert stream.faulty_since is None
    pump.error = KeyError("marks")
    stream.run(300)
    pump.error = None
    stream.run(400)
    assert (stream.faulty_since, stream.said) == (None, "")
