from tests.support.nvml import Record, RecordedNvml
from worker.devices import nvml as library


def test_device_files_of_gpus() -> None:
    boxed = RecordedNvml(Record("GPU-a"), Record("GPU-b", lost=True), Record("GPU-c"))
    assert library.device_files(boxed) == {"GPU-a": (195, 2), "GPU-c": (195, 0)}
    mig = RecordedNvml(Record("GPU-a"), Record("GPU-b", instances=[Record("MIG-1")]))
    assert library.device_files(mig) == {}
