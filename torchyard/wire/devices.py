"""GPUs and CPU slots of a node."""

from enum import StrEnum

from torchyard.wire.finding import Finding
from torchyard.wire.protocol import DescribedMessage, Message


class DeviceKind(StrEnum):
    GPU = "gpu"
    CPU_SLOT = "cpu"


def is_mig_instance(uuid: str) -> bool:
    """Return whether a GPU's UUID, as NVML gives it, is that of a MIG instance."""
    return uuid.startswith("MIG-")


class LinkLevel(StrEnum):
    """The link between two GPUs of a node, the fastest first, as the driver tells it."""

    NVLINK = "nvlink"
    #: One PCIe switch.
    PIX = "pix"
    #: Several PCIe switches.
    PXB = "pxb"
    #: A PCIe host bridge.
    PHB = "phb"
    #: The NUMA node's interconnect.
    NODE = "node"
    #: The link between NUMA nodes.
    SYS = "sys"


class Topology(DescribedMessage):
    """The links of a GPU to the node's other GPUs; what the driver does not tell is left out."""

    numa: int | None = None
    """Its NUMA node."""
    links: dict[str, LinkLevel] = {}
    """By UUID of the other GPU."""


class Device(Message):
    """One GPU or CPU slot of a node."""

    uuid: str
    index: int
    kind: DeviceKind
    name: str
    memory: int
    #: Why the device must not be used: another stack owns it, or a rank on it could not be killed.
    unusable: str | None = None
    #: What takes it out of use until an administrator returns it, with the mend, in words that stay the same as long
    #: as that does: what the driver says is broken, or who squats on it.
    fault: str | None = None
    #: Bytes of it that processes from outside of the queue hold.
    foreign_memory: int | None = None
    topology: Topology | None = None
    #: What `unusable` and `fault` are made of; those whose message is neither do not count. An older node tells none.
    findings: tuple[Finding, ...] = ()

    def unusable_for(self, finding: Finding) -> "Device":
        """Return the device as one that must not be used."""
        return self.model_copy(update={"unusable": finding.message, "findings": (*self.findings, finding)})

    def with_fault(self, finding: Finding) -> "Device":
        """Return the device as one that a fault takes out of use."""
        return self.model_copy(update={"fault": finding.message, "findings": (*self.findings, finding)})
