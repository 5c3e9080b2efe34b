"""Free capacity of a node: whole GPUs, memory of shared ones, CPU cores and memory."""

from collections.abc import Iterable

from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot
from torchyard.ids import JobId


class NodeCapacity:
    """A node and the part of it that is not allocated."""

    __slots__ = ("cpus", "free", "info", "jobs", "memory", "shared", "usable")

    def __init__(self, info: NodeInfo) -> None:
        self.info = info
        self.usable = {slot.uuid: slot for slot in info.slots if slot.unusable is None}
        #: Slots that no job holds, whole or shared.
        self.free = self.usable.copy()
        #: Memory given out of slots that are shared, for each job that shares one.
        self.shared: dict[str, dict[str, int]] = {}
        self.cpus = info.cpus
        self.memory = info.memory
        #: Jobs that hold resources here, in the order in which they were allocated.
        self.jobs: dict[JobId, None] = {}

    def copy(self) -> "NodeCapacity":
        """Return a copy that later changes of this one do not touch."""
        other = NodeCapacity.__new__(NodeCapacity)
        other.info, other.usable = self.info, self.usable
        other.free, other.jobs = self.free.copy(), self.jobs.copy()
        other.shared = {uuid: shares.copy() for uuid, shares in self.shared.items()}
        other.cpus, other.memory = self.cpus, self.memory
        return other

    def hold(self, job: JobId, resources: ResourceRequest, uuids: Iterable[str]) -> None:
        """Allocate the resources to the job.

        More cores and memory may be allocated than the node has: it can shrink while jobs run on it.
        """
        self.jobs[job] = None
        self.cpus -= resources.cpus
        self.memory -= resources.memory
        for uuid in uuids:
            untouched = self.free.pop(uuid, None) is not None
            if resources.gpu_share and (untouched or uuid in self.shared):
                self.shared.setdefault(uuid, {})[job] = resources.gpu_share
            elif uuid in self.shared:
                # The jobs that share it are being preempted for this one: no other may be placed beside them.
                self.shared[uuid][job] = self.usable[uuid].memory

    def release(self, job: JobId, resources: ResourceRequest, uuids: Iterable[str]) -> None:
        """Free the resources that the job was allocated."""
        self.jobs.pop(job, None)
        self.cpus += resources.cpus
        self.memory += resources.memory
        for uuid in uuids:
            shares = self.shared.get(uuid)
            if shares is not None:
                shares.pop(job, None)
            if not shares:
                self.shared.pop(uuid, None)
                if uuid in self.usable:
                    self.free[uuid] = self.usable[uuid]

    def spare(self, slot: Slot) -> int:
        """Return the memory of a slot that can still be shared; 0 if a job has the slot to itself."""
        if slot.uuid in self.free:
            return slot.memory
        shares = self.shared.get(slot.uuid)
        return slot.memory - sum(shares.values()) if shares else 0

    def has_cpus_and_memory(self, resources: ResourceRequest) -> bool:
        """Return whether the free cores and memory suffice for the job; a job that names none asks for none."""
        return (not resources.cpus or resources.cpus <= self.cpus) and (
            not resources.memory or resources.memory <= self.memory
        )
