"""NVML as a box with GPUs answers it: the functions of `pynvml` over a table of cards."""
# ruff: noqa: N802, N803, N815 (the library's own names)

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class NVMLError(Exception):
    """As `pynvml.NVMLError`."""

    def __init__(self, words: str, value: int = 999) -> None:
        super().__init__(words)
        self.value = value


@dataclass
class Record:
    """What one card, or one MIG instance, answers; None for what it does not support."""

    uuid: str
    name: str = "NVIDIA H200"
    total: int = 150_754_820_096
    used: int = 545_193_984
    utilization: int | None = 37
    temperature: int | None = 41
    power: int | None = 121_344
    #: Errors since the last reset that ECC could not correct.
    uncorrected: int | None = 0
    pids: list[int] = field(default_factory=list)
    #: What those of them hold of its memory whose use the driver tells.
    held: dict[int, int] = field(default_factory=dict)
    instances: "list[Record]" = field(default_factory=list)
    lost: bool = False
    #: PCI bus id as NVML writes it.
    bus: str | None = None
    #: The other ends of its live NVLinks: bus ids of cards or switches.
    nvlinks: list[str] = field(default_factory=list)
    #: `nvmlGpuTopologyLevel_t` of the common ancestor with other cards, by UUID.
    ancestors: dict[str, int] = field(default_factory=dict)


@dataclass
class Values:
    """A structure of the C library."""

    busId: str = ""
    device: Record | None = None
    eventData: int = 0

    total: int = 0
    used: int = 0
    gpu: int = 0
    pid: int = 0
    usedGpuMemory: int | None = None


class RecordedNvml:
    """Cards in the order of their PCI bus ids."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = 0
    NVML_NVLINK_MAX_LINKS = 18
    NVML_ERROR_TIMEOUT = 10
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    nvmlEventTypeXidCriticalError = 8

    def __init__(self, *cards: Record) -> None:
        self.cards = list(cards)
        self.events: Iterator[tuple[Record, int] | None] = iter(())

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Record:
        if self.cards[index].lost:
            raise NVMLError("GPU is lost")
        return self.cards[index]

    def nvmlDeviceGetUUID(self, handle: Record) -> str:
        return handle.uuid

    def nvmlDeviceGetMinorNumber(self, handle: Record) -> int:
        """Not always in the order of the cards."""
        return len(self.cards) - 1 - self.cards.index(handle)

    def nvmlDeviceGetName(self, handle: Record) -> str:
        return handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: Record) -> Values:
        return Values(total=handle.total, used=handle.used)

    def nvmlDeviceGetUtilizationRates(self, handle: Record) -> Values:
        return Values(gpu=_supported(handle.utilization))

    def nvmlDeviceGetTemperature(self, handle: Record, sensor: int) -> int:
        return _supported(handle.temperature)

    def nvmlDeviceGetPowerUsage(self, handle: Record) -> int:
        return _supported(handle.power)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Record) -> list[Values]:
        return [Values(pid=pid, usedGpuMemory=handle.held.get(pid)) for pid in handle.pids]

    def nvmlDeviceGetTotalEccErrors(self, handle: Record, errorType: int, counterType: int) -> int:
        assert (errorType, counterType) == (self.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, self.NVML_VOLATILE_ECC)
        return _supported(handle.uncorrected)

    def nvmlDeviceGetMigMode(self, device: Record) -> list[int]:
        return [int(bool(device.instances)), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Record) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Record, index: int) -> Record:
        if index >= len(device.instances):
            raise NVMLError("Not Found")
        return device.instances[index]

    def nvmlEventSetCreate(self) -> list[str]:
        return []

    def nvmlEventSetFree(self, eventSet: list[str]) -> None:
        eventSet.clear()

    def nvmlDeviceRegisterEvents(self, handle: Record, eventTypes: int, eventSet: list[str]) -> None:
        eventSet.append(handle.uuid)

    def nvmlEventSetWait_v2(self, eventSet: list[str], timeoutms: int) -> Values:
        """The next of `events`: a card's Xid, or nothing for as long as the wait lasts."""
        event = next(self.events, None)
        if event is None:
            raise NVMLError("Timeout", self.NVML_ERROR_TIMEOUT)
        card, xid = event
        return Values(device=card, eventData=xid)

    def nvmlDeviceGetPciInfo(self, handle: Record) -> Values:
        return Values(busId=_known(handle.bus))

    def nvmlDeviceGetTopologyCommonAncestor(self, device1: Record, device2: Record) -> int:
        return _supported(device1.ancestors.get(device2.uuid))

    def nvmlDeviceGetNvLinkState(self, device: Record, link: int) -> int:
        return int(link < len(device.nvlinks))

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: Record, link: int) -> Values:
        return Values(busId=device.nvlinks[link])


def _known(value: str | None) -> str:
    if value is None:
        raise NVMLError("Not Supported")
    return value


def _supported(value: Any) -> int:
    if value is None:
        raise NVMLError("Not Supported")
    return int(value)
