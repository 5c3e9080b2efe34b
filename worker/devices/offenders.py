"""Who computes on a GPU that the queue has given to somebody else: isolation by a variable is cooperative."""

from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from worker.devices import nvml as library
from worker.inventory import Status
from worker.shim import table


@dataclass(frozen=True, kw_only=True)
class Offender:
    """A process on a GPU that is not its own."""

    uuid: str
    pid: int
    user: str
    name: str
    holder: str | None
    """The attempt that has the GPU."""

    def __str__(self) -> str:
        whose = f"which {self.holder} holds" if self.holder else "which the queue has given to nobody"
        return f"process {self.pid} ({self.name}) of {self.user} uses GPU {self.uuid}, {whose}"


def find(nvml: library.Nvml, attempts: Sequence[Status]) -> list[Offender]:
    """All offenders on this machine, as of now."""
    everyone = table.everyone()
    holders = {uuid: status for status in attempts for uuid in status.devices if status.living}
    found = []
    for card in library.cards(nvml):
        holder = holders.get(card.uuid)
        tree = table.below(everyone, holder.shim.pid) if holder and holder.shim else []
        strangers = set(library.processes(nvml, card)) - {process.pid for process in tree}
        found += [_offender(card.uuid, pid, holder) for pid in sorted(strangers)]
    return [offender for offender in found if offender is not None]


def _offender(uuid: str, pid: int, holder: Status | None) -> Offender | None:
    try:
        process = psutil.Process(pid)
        name, user = process.name(), process.username()
    except psutil.Error:
        return None
    return Offender(uuid=uuid, pid=pid, user=user, name=name, holder=holder.attempt if holder else None)
