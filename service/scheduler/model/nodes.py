"""The plain data that policy and explanation work on: what jobs need, and what nodes have.

No database and no clock: the live scheduler, the tests and the simulator each build these values in their own way.
Sizes are bytes, times integer microseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

from torchyard.wire import is_mig_instance


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceRequest:
    """Resources that a job needs on one node; 0 asks for nothing."""

    gpus: int
    gpu_memory_min: int = 0
    #: Memory that it takes of each GPU, which it then shares; 0: it shares no GPU.
    gpu_share: int = 0
    #: Part of the GPUs' name, in small letters.
    gpu_type: str = ""
    #: A CPU slot does not do.
    gpus_alone: bool = False
    labels: frozenset[str] = frozenset()
    #: Its processes have a network of their own.
    isolated: bool = False
    #: It gets values of secrets.
    secrets: bool = False
    #: It must not start warm (`warm_start: false`).
    cold: bool = False
    cpus: int = 0
    memory: int = 0
    #: Nodes that run no jobs of its owner: they have no UNIX account there.
    excluded_nodes: frozenset[str] = frozenset()

    @property
    def any_slot(self) -> bool:
        """Return whether the job can use every slot of a node."""
        return self.gpus == 1 and not (self.gpu_memory_min or self.gpu_type or self.gpu_share or self.gpus_alone)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Slots of one node, for one job."""

    node: str
    uuids: tuple[str, ...]


class LinkType(IntEnum):
    """Link between two GPUs of a node, the fastest first; the names are those of `nvidia-smi topo`."""

    NVLINK = 0
    #: One PCIe switch.
    PIX = 1
    #: Several PCIe switches.
    PXB = 2
    #: The PCIe host bridge.
    PHB = 3
    #: The interconnect of one NUMA node.
    NODE = 4
    #: The interconnect between NUMA nodes.
    SYS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One GPU or CPU slot."""

    uuid: str
    index: int
    memory: int
    kind: str = "gpu"
    #: Why it must not be used, and the finding (`torchyard.wire.Finding`) that this is of, as far as it is known.
    unusable: str | None = None
    finding: Mapping[str, object] | None = field(default=None, hash=False)
    #: The product's name, as the driver tells it.
    name: str = ""
    numa: int | None = None
    #: Links to other slots of its node, by their `uuid`, as far as they are known.
    links: Mapping[str, LinkType] = field(default_factory=dict, hash=False)

    def link_type(self, other: "Slot") -> LinkType:
        """Return the link to another slot; where the driver reports none, it is derived from the NUMA nodes."""
        known = self.links.get(other.uuid)
        if known is not None:
            return known
        apart = self.numa is not None and other.numa is not None and self.numa != other.numa
        return LinkType.SYS if apart else LinkType.NODE

    def suits(self, resources: ResourceRequest) -> bool:
        """Return whether the slot has the type and memory that the job asks for, free or not."""
        if resources.gpus > 1 and is_mig_instance(self.uuid):
            return False  # CUDA shows a process no more than one
        if resources.gpu_type and resources.gpu_type.lower() not in self.name.lower():
            return False
        if resources.gpus_alone and self.kind != "gpu":
            return False
        return self.memory >= resources.gpu_memory_min and self.memory >= resources.gpu_share


class ClosedReason(StrEnum):
    """Reason for which a node takes no new jobs."""

    DRAINING = "draining"
    UNREACHABLE = "unreachable"
    DISK_FLOOR = "disk-floor"
    SERVICE_DISK = "service-disk"


class LowDisk(NamedTuple):
    """Disk space that a node has free, and the floor below which nothing starts there, as text.

    Rounded as in messages, so that a node counts as changed only when its message does.
    """

    free: str
    floor: str


@dataclass(frozen=True, kw_only=True)
class NodeInfo:
    """A node, its slots, CPU cores and memory, and whether it takes jobs."""

    name: str
    slots: tuple[Slot, ...]
    cpus: int
    memory: int
    closed: ClosedReason | None = None
    #: Told with `ClosedReason.DISK_FLOOR`.
    low_disk: LowDisk | None = None
    labels: frozenset[str] = frozenset()
    #: The maintenance that it drains for.
    maintenance: str | None = None
    #: Why it drains, in the administrator's words.
    drain_message: str | None = None
    #: What its worker can do: shared GPUs, secrets, jobs that must not start warm, and networks of their own.
    knows_shares: bool = True
    knows_secrets: bool = True
    knows_warm_start: bool = True
    isolates: bool = True

    def outdated(self, resources: ResourceRequest) -> str | None:
        """Return in words what the job needs and the node's worker is too old for; None if there is none."""
        if resources.gpu_share and not self.knows_shares:
            return "shared GPUs"
        if resources.secrets and not self.knows_secrets:
            return "secrets"
        return "warm_start" if resources.cold and not self.knows_warm_start else None

    def offers(self, resources: ResourceRequest) -> bool:
        """Return whether the node has the labels and the kind of network that the job asks for."""
        return resources.labels <= self.labels and (self.isolates or not resources.isolated)

    @cached_property
    def usable(self) -> "NodeInfo":
        """The same node without the slots that must not be used."""
        if all(slot.unusable is None for slot in self.slots):
            return self
        return replace(self, slots=tuple(slot for slot in self.slots if slot.unusable is None))

    @cached_property
    def _memories(self) -> dict[str, int]:
        return {slot.uuid: slot.memory for slot in self.slots}

    def memory_of(self, uuid: str) -> int:
        """Return the memory of a slot in bytes; 0 if the node has no such slot."""
        return self._memories.get(uuid, 0)

    @property
    def word(self) -> str:
        """Word for the node's slots in messages: GPUs or CPU slots."""
        return "GPUs" if self.unit == "gpu" else "CPU slots"

    @property
    def unit(self) -> str:
        """Kind of the node's slots: gpu or cpu."""
        return "gpu" if any(slot.kind == "gpu" for slot in self.slots) else "cpu"

    def lacks_gpus(self, resources: ResourceRequest) -> bool:
        """Return whether the job needs GPUs and the node has CPU slots only."""
        return resources.gpus_alone and not any(slot.kind == "gpu" for slot in self.slots)

    def could_hold(self, resources: ResourceRequest) -> bool:
        """Return whether the job would fit on the node if it were empty."""
        return (
            self.name not in resources.excluded_nodes
            and self.offers(resources)
            and not self.lacks_gpus(resources)
            and resources.gpus <= sum(slot.suits(resources) for slot in self.slots)
            and resources.cpus <= self.cpus
            and resources.memory <= self.memory
        )
