"""Broken GPUs, by what their driver tells: Xids, and errors of memory that ECC could not correct."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from torchyard.wire import Device, Finding, FindingCode
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


def find(nvml: library.Nvml, xids: Mapping[str, tuple[int, int]]) -> dict[str, Finding]:
    """Return what is broken about GPUs, by UUID of each card or MIG instance; those that are well are left out.

    `xids` has the newest of each GPU with its time in microseconds. The words are the same as long as the fault is.
    """
    found = {}
    for card in library.cards(nvml):
        whole = library.ask(nvml, partial(nvml.nvmlDeviceGetHandleByIndex, card.index))
        uuid = library.ask(nvml, partial(nvml.nvmlDeviceGetUUID, whole)) or card.uuid
        seen, errors = xids.get(uuid), library.uncorrected_errors(nvml, whole)
        if seen is not None or errors:
            found[card.uuid] = _broken(seen, errors)
    return found


def mark(devices: Sequence[Device], found: Mapping[str, Finding]) -> list[Device]:
    """Return the devices with what is broken about them."""
    return [each.with_fault(found[each.uuid]) if each.uuid in found else each for each in devices]


def _broken(seen: tuple[int, int] | None, errors: int | None) -> Finding:
    words, params = [], dict[str, str | int]()
    if seen is not None:
        at_us, xid = seen
        at = f"{datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S UTC}"
        words.append(f"Xid {xid} ({XIDS[xid]}) at {at}")
        params |= {"xid": xid, "at": at}
    if errors:
        words.append(f"{errors} uncorrectable memory error{'' if errors == 1 else 's'} (ECC) since its last reset")
        params |= {"errors": errors}
    message = f"{' and '.join(words)}: reset the GPU, or reboot the node"
    return Finding(code=FindingCode.BROKEN, message=message, params=params)
