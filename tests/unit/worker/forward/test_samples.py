from torchyard import wire
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward.samples import BATCH, KEEP_S, SampleForwarder


class Sink:
    def __init__(self) -> None:
        self.batches: list[list[wire.Sample]] = []
        self.error: Exception | None = None

    def samples(self, samples: list[wire.Sample]) -> None:
        if self.error:
            raise self.error
        self.batches.append(samples)


class Sensor:
    """One sample every two seconds."""

    def __init__(self) -> None:
        self.time_us = 0

    def __call__(self) -> list[wire.Sample]:
        self.time_us += 2_000_000
        return [wire.Sample(time_us=self.time_us, values={"cpu.percent": 1.0})]


def test_what_waited_is_sent_in_order_and_in_batches() -> None:
    sink, sensor = Sink(), Sensor()
    forwarder = SampleForwarder(lambda: sensor() * 10, sink)
    sink.error = UnavailableError()
    for _ in range(60):
        forwarder.step()
    sink.error = None
    forwarder.step()
    times = [sample.time_us for batch in sink.batches for sample in batch]
    assert times == sorted(times)
    assert [len(batch) for batch in sink.batches] == [BATCH, 110]


def test_the_oldest_are_dropped_after_ten_minutes() -> None:
    sink, sensor = Sink(), Sensor()
    forwarder = SampleForwarder(sensor, sink)
    sink.error = UnavailableError()
    for _ in range(1000):
        forwarder.step()
    sink.error = None
    forwarder.step()
    times = [sample.time_us for batch in sink.batches for sample in batch]
    assert times[-1] - times[0] == KEEP_S * 1e6


def test_refused_samples_are_not_sent_again() -> None:
    sink, sensor = Sink(), Sensor()
    forwarder = SampleForwarder(sensor, sink)
    sink.error = RequestRefusedError(422, {}, "POST samples")
    forwarder.step()
    sink.error = None
    forwarder.step()
    assert [len(batch) for batch in sink.batches] == [1]
