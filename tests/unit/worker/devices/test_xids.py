import threading
from collections.abc import Iterator

import pytest

from tests.support.nvml import NVMLError, Record, RecordedNvml
from worker.devices.xids import Xids

A, B = Record("GPU-a"), Record("GPU-b")


def listened(*events: tuple[Record, int] | None) -> Xids:
    """After the driver has told of these events, in a thread that ended."""
    nvml, stopped = RecordedNvml(A, B), threading.Event()

    def told() -> Iterator[tuple[Record, int] | None]:
        yield from events
        stopped.set()

    nvml.events = told()
    xids = Xids(nvml)
    xids.listen(stopped)
    return xids


def test_faults_of_the_hardware_count_and_those_of_programs_do_not() -> None:
    xids = listened((A, 13), None, (B, 79), (A, 31))
    assert xids.of(["GPU-a", "GPU-b"], 0) == 79
    assert xids.of(["GPU-a"], 0) is None


def test_only_what_happened_since_a_moment_counts() -> None:
    xids = listened((A, 48))
    assert xids.of(["GPU-a"], 0) == 48
    assert xids.of(["GPU-a"], 2**62) is None


def test_the_newest_fault_is_told() -> None:
    xids = listened((A, 48), (B, 74), (A, 95), (B, 13))
    assert xids.of(["GPU-a"], 0) == 95
    assert {uuid: xid for uuid, (_, xid) in xids.newest().items()} == {"GPU-a": 95, "GPU-b": 74}


def test_a_driver_that_refuses_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, stopped = RecordedNvml(A), threading.Event()

    def refuse(*_: object) -> None:
        stopped.set()
        raise NVMLError("Not Supported")

    monkeypatch.setattr(nvml, "nvmlEventSetWait_v2", refuse)
    xids = Xids(nvml)
    xids.listen(stopped)
    assert xids.of(["GPU-a"], 0) is None


def test_without_a_driver_nobody_listens() -> None:
    Xids(None).listen(threading.Event())
