import os

import pytest

from tests.support.nvml import Record, RecordedNvml
from torchyard.wire import Device, DeviceKind
from worker.devices.discovery import discover

PART = Record("MIG-1", name="NVIDIA H200 MIG 1g.18gb", total=18 << 30, utilization=None)
BOX = RecordedNvml(Record("GPU-a"), Record("GPU-b", lost=True), Record("GPU-c"), Record("GPU-d", instances=[PART]))


def test_every_gpu_that_answers() -> None:
    assert discover(BOX, own={}) == [
        Device(uuid="GPU-a", index=0, kind=DeviceKind.GPU, name="NVIDIA H200", memory=150_754_820_096),
        Device(uuid="GPU-c", index=2, kind=DeviceKind.GPU, name="NVIDIA H200", memory=150_754_820_096),
        Device(uuid="MIG-1", index=1030, kind=DeviceKind.GPU, name="NVIDIA H200 MIG 1g.18gb", memory=18 << 30),
    ]


@pytest.mark.parametrize("visible", ["2", "GPU-c", "7, 2"])
def test_a_worker_that_sees_some_offers_these(visible: str) -> None:
    assert [device.uuid for device in discover(BOX, own={"CUDA_VISIBLE_DEVICES": visible})] == ["GPU-c"]


@pytest.mark.parametrize("nvml", [None, RecordedNvml()])
def test_slots_where_there_is_no_gpu(nvml: RecordedNvml | None) -> None:
    slots = discover(nvml, own={})
    assert len(slots) == os.cpu_count()
    assert {slot.kind for slot in slots} == {DeviceKind.CPU_SLOT}
    assert (slots[0].uuid, slots[0].index) == ("cpu-0", 0)
    assert slots[0].memory > 0


def test_slots_instead_of_gpus_when_asked_for() -> None:
    assert [slot.uuid for slot in discover(BOX, 2, own={})] == ["cpu-0", "cpu-1"]
    assert discover(None, 0, own={}) == []
