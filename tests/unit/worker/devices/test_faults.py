"""What the driver says is broken, on recorded answers."""

from tests.support.nvml import Record, RecordedNvml
from torchyard.failures.fingerprints import GPU_XIDS
from torchyard.wire import Device, DeviceKind, Finding, FindingCode
from worker.devices import faults

AT_US = 1_764_093_603_500_000  # 2025-11-25 18:00:03 UTC
MEND = ": reset the GPU, or reboot the node"
XID = f"Xid 79 (it has fallen off the bus) at 2025-11-25 18:00:03 UTC{MEND}"


def test_cards_that_are_well_have_no_fault() -> None:
    assert faults.find(RecordedNvml(Record("GPU-a"), Record("GPU-b", uncorrected=None)), {}) == {}


def test_xids_and_uncorrected_errors_are_told() -> None:
    well, lost = Record("GPU-b"), Record("GPU-d", lost=True)
    nvml = RecordedNvml(Record("GPU-a", uncorrected=1), well, Record("GPU-c", uncorrected=3), lost)
    found = faults.find(nvml, {"GPU-b": (AT_US, 79), "GPU-c": (AT_US, 48), "GPU-d": (AT_US, 79)})
    assert {uuid: each.message for uuid, each in found.items()} == {
        "GPU-a": f"1 uncorrectable memory error (ECC) since its last reset{MEND}",
        "GPU-b": XID,
        "GPU-c": "Xid 48 (an uncorrectable memory error) at 2025-11-25 18:00:03 UTC and "
        f"3 uncorrectable memory errors (ECC) since its last reset{MEND}",
    }
    at = "2025-11-25 18:00:03 UTC"
    params = {"GPU-a": {"errors": 1}, "GPU-b": {"xid": 79, "at": at}, "GPU-c": {"xid": 48, "at": at, "errors": 3}}
    assert {uuid: each.params for uuid, each in found.items()} == params


def test_an_instance_shares_the_fault_of_its_gpu() -> None:
    whole = Record("GPU-a", instances=[Record("MIG-1"), Record("MIG-2")])
    found = faults.find(RecordedNvml(whole), {"GPU-a": (AT_US, 79)})
    assert {uuid: each.message for uuid, each in found.items()} == {"MIG-1": XID, "MIG-2": XID}


def test_devices_are_marked() -> None:
    devices = [Device(uuid=uuid, index=0, kind=DeviceKind.GPU, name="", memory=1) for uuid in ("GPU-a", "GPU-b")]
    found = Finding(code=FindingCode.BROKEN, message=XID)
    marked = faults.mark(devices, {"GPU-b": found})
    assert [(each.fault, each.findings) for each in marked] == [(None, ()), (XID, (found,))]


def test_each_xid_that_counts_has_its_words() -> None:
    assert faults.XIDS.keys() == GPU_XIDS
