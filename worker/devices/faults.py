"""Broken GPUs, by what their driver tells: Xids, and errors of memory that ECC could not correct."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from torchyard.wire import Device
from worker.devices import nvml as library

#: Meanings of those Xids that tell of broken hardware (`torchyard.failures.fingerprints.GPU_XIDS`).
XIDS: Final = {
    48: "an uncorrectable memory error",
    64: "a row of memory that could not be replaced",
    74: "an NVLink error",
    79: "it has fallen off the bus",
    94: "a contained memory error",
    95: "an uncontained memory error",
    119: "its system processor does not answer",
    120: "its system processor failed",
}


def find(nvml: library.Nvml, xids: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Return what is broken about GPUs, by UUID of each card or MIG instance; those that are well are left out.

    `xids` has the newest of each GPU with its time in microseconds. The words are the same as long as the fault is.
    """
    found = {}
    for card in library.cards(nvml):
        whole = library.ask(nvml, partial(nvml.nvmlDeviceGetHandleByIndex, card.index))
        uuid = library.ask(nvml, partial(nvml.nvmlDeviceGetUUID, whole)) or card.uuid
        faults = [*_of_xid(xids.get(uuid)), *_of_memory(library.uncorrected_errors(nvml, whole))]
        if faults:
            found[card.uuid] = f"{' and '.join(faults)}: reset the GPU, or reboot the node"
    return found


def mark(devices: Sequence[Device], found: Mapping[str, str]) -> list[Device]:
    """Return the devices with what is broken about them."""
    return [each.model_copy(update={"fault": found[each.uuid]}) if each.uuid in found else each for each in devices]


def _of_xid(seen: tuple[int, int] | None) -> list[str]:
    if seen is None:
        return []
    at_us, xid = seen
    return [f"Xid {xid} ({XIDS[xid]}) at {datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S UTC}"]


def _of_memory(errors: int | None) -> list[str]:
    if not errors:
        return []
    return [f"{errors} uncorrectable memory error{'' if errors == 1 else 's'} (ECC) since its last reset"]
