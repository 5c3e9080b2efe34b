"""GPUs that processes from outside of the queue use: what is done with the rest of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from torchyard.quantities import format_size
from torchyard.wire import Device, Finding, FindingCode
from worker.devices.offenders import Offender

#: `use`: jobs get what memory is free. `wait`: so do they while little is held, else the GPU waits for the processes'
#: end. `exclude`: instead of that it goes out of use until an administrator returns it.
Policy = Literal["use", "wait", "exclude"]
#: Reported memory is a multiple of this: a device that changes wakes the scheduler.
STEP: Final = 256 * 2**20


@dataclass(frozen=True, kw_only=True)
class ForeignProcesses:
    """Policy of the node's administrator about processes from outside of the queue."""

    policy: Policy = "wait"
    tolerated: int = 2**30
    """Bytes that they may hold of a GPU without keeping jobs off it."""

    def apply(self, devices: Sequence[Device], offenders: Sequence[Offender]) -> list[Device]:
        """Return the devices as the queue may use them beside those processes.

        A GPU that an attempt holds stays as it is, but for its memory: others may share it. What is left of attempts
        that have ended is `offenders.keep_off`'s.
        """
        found: defaultdict[str, list[Offender]] = defaultdict(list)
        for offender in offenders:
            if offender.leftover is None:
                found[offender.uuid].append(offender)
        return [self._beside(device, found) for device in devices]

    def _beside(self, device: Device, found: Mapping[str, list[Offender]]) -> Device:
        here = found.get(device.uuid)
        if not here:
            return device
        # Of one that the driver does not tell, nobody knows what is free beside it.
        held = sum(device.memory if each.memory is None else each.memory for each in here)
        rounded = min(device.memory, -(-held // STEP) * STEP)
        beside = device.model_copy(update={"foreign_memory": rounded})
        held_by_queue = any(each.holders for each in here)
        if held_by_queue or self.policy == "use" or held <= self.tolerated or device.unusable is not None:
            return beside
        largest = max(here, key=lambda each: each.memory or 0)
        if self.policy == "exclude":
            return beside.with_fault(_excluded(largest))
        return beside.unusable_for(_awaited(largest, len(here) - 1, format_size(rounded)))


def _excluded(largest: Offender) -> Finding:
    message = f"{largest.title} is not of the queue: end it"
    return Finding(code=FindingCode.EXCLUDED, message=message, params=largest.params)


def _awaited(largest: Offender, others: int, held: str) -> Finding:
    more = f" and {others} more process{'es' if others > 1 else ''}" if others else ""
    holds = f"hold{'' if others else 's'} about {held} of it from outside of the queue"
    message = f"{largest.title}{more} {holds}: jobs wait until that has ended"
    return Finding(code=FindingCode.AWAITED, message=message, params={**largest.params, "others": others, "held": held})
