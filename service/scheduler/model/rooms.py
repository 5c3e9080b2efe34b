"""What is left of each node: whole GPUs, memory of shared ones, cores and memory."""

from collections.abc import Iterable
from typing import Protocol

from service.scheduler.model.boxes import Box, Place, Shape, Slot


class Holder(Protocol):
    """A job that holds places."""

    @property
    def job(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def places(self) -> tuple[Place, ...]: ...


class Room:
    """A node and what nobody holds of it."""

    __slots__ = ("box", "cpus", "free", "jobs", "memory", "shared", "usable")

    def __init__(self, box: Box) -> None:
        self.box = box
        self.usable = {slot.uuid: slot for slot in box.slots if slot.unusable is None}
        #: Slots that nobody holds, whole or shared.
        self.free = self.usable.copy()
        #: Memory given out of slots that are shared, for each job that shares one.
        self.shared: dict[str, dict[str, int]] = {}
        self.cpus = box.cpus
        self.memory = box.memory
        #: Who holds something here, in the order in which it was given.
        self.jobs: dict[str, None] = {}

    def copy(self) -> "Room":
        """Independent of this one."""
        other = Room.__new__(Room)
        other.box, other.usable = self.box, self.usable
        other.free, other.jobs = self.free.copy(), self.jobs.copy()
        other.shared = {uuid: parts.copy() for uuid, parts in self.shared.items()}
        other.cpus, other.memory = self.cpus, self.memory
        return other

    def hold(self, job: str, shape: Shape, uuids: Iterable[str]) -> None:
        """Gives it out. What is held of cores and memory may pass what there is: nodes shrink under what runs."""
        self.jobs[job] = None
        self.cpus -= shape.cpus
        self.memory -= shape.memory
        for uuid in uuids:
            untouched = self.free.pop(uuid, None) is not None
            if shape.gpu_share and (untouched or uuid in self.shared):
                self.shared.setdefault(uuid, {})[job] = shape.gpu_share
            elif uuid in self.shared:
                # Those who share it are being stopped for this one: nobody else may slip in beside them.
                self.shared[uuid][job] = self.usable[uuid].memory

    def release(self, job: str, shape: Shape, uuids: Iterable[str]) -> None:
        """Takes it back."""
        self.jobs.pop(job, None)
        self.cpus += shape.cpus
        self.memory += shape.memory
        for uuid in uuids:
            parts = self.shared.get(uuid)
            if parts is not None:
                parts.pop(job, None)
            if not parts:
                self.shared.pop(uuid, None)
                if uuid in self.usable:
                    self.free[uuid] = self.usable[uuid]

    def spare(self, slot: Slot) -> int:
        """Memory of a slot that can still be shared; 0 if somebody holds it whole."""
        if slot.uuid in self.free:
            return slot.memory
        parts = self.shared.get(slot.uuid)
        return slot.memory - sum(parts.values()) if parts else 0

    def roomy(self, shape: Shape) -> bool:
        """Whether cores and memory suffice; a job that names none asks for none."""
        return (not shape.cpus or shape.cpus <= self.cpus) and (not shape.memory or shape.memory <= self.memory)
