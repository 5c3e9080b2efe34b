"""What is left of each node: whole GPUs, memory of shared ones, cores and memory."""

from collections.abc import Iterable

from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot


class NodeCapacity:
    """A node and what nobody holds of it."""

    __slots__ = ("cpus", "free", "info", "jobs", "memory", "shared", "usable")

    def __init__(self, info: NodeInfo) -> None:
        self.info = info
        self.usable = {slot.uuid: slot for slot in info.slots if slot.unusable is None}
        #: Slots that nobody holds, whole or shared.
        self.free = self.usable.copy()
        #: Memory given out of slots that are shared, for each job that shares one.
        self.shared: dict[str, dict[str, int]] = {}
        self.cpus = info.cpus
        self.memory = info.memory
        #: Who holds something here, in the order in which it was given.
        self.jobs: dict[str, None] = {}

    def copy(self) -> "NodeCapacity":
        """Independent of this one."""
        other = NodeCapacity.__new__(NodeCapacity)
        other.info, other.usable = self.info, self.usable
        other.free, other.jobs = self.free.copy(), self.jobs.copy()
        other.shared = {uuid: shares.copy() for uuid, shares in self.shared.items()}
        other.cpus, other.memory = self.cpus, self.memory
        return other

    def hold(self, job: str, resources: ResourceRequest, uuids: Iterable[str]) -> None:
        """Gives it out. What is held of cores and memory may pass what there is: nodes shrink under what runs."""
        self.jobs[job] = None
        self.cpus -= resources.cpus
        self.memory -= resources.memory
        for uuid in uuids:
            untouched = self.free.pop(uuid, None) is not None
            if resources.gpu_share and (untouched or uuid in self.shared):
                self.shared.setdefault(uuid, {})[job] = resources.gpu_share
            elif uuid in self.shared:
                # Those who share it are being stopped for this one: nobody else may slip in beside them.
                self.shared[uuid][job] = self.usable[uuid].memory

    def release(self, job: str, resources: ResourceRequest, uuids: Iterable[str]) -> None:
        """Takes it back."""
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
        """Memory of a slot that can still be shared; 0 if somebody holds it whole."""
        if slot.uuid in self.free:
            return slot.memory
        shares = self.shared.get(slot.uuid)
        return slot.memory - sum(shares.values()) if shares else 0

    def roomy(self, resources: ResourceRequest) -> bool:
        """Whether cores and memory suffice; a job that names none asks for none."""
        return (not resources.cpus or resources.cpus <= self.cpus) and (
            not resources.memory or resources.memory <= self.memory
        )
