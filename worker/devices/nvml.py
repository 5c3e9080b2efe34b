"""The calls of NVML that the worker uses, read into plain values."""
# ruff: noqa: N802, N803, N815 (the library's own names)

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

Handle = Any
Answer = TypeVar("Answer")


class Nvml(Protocol):
    """Functions of the module `pynvml`, after `nvmlInit`."""

    NVMLError: type[Exception]
    NVML_TEMPERATURE_GPU: int
    NVML_NVLINK_MAX_LINKS: int
    NVML_ERROR_TIMEOUT: int
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED: int
    NVML_VOLATILE_ECC: int
    nvmlEventTypeXidCriticalError: int

    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Handle: ...
    def nvmlDeviceGetUUID(self, handle: Handle) -> str: ...
    def nvmlDeviceGetMinorNumber(self, handle: Handle) -> int: ...
    def nvmlDeviceGetName(self, handle: Handle) -> str: ...
    def nvmlDeviceGetMemoryInfo(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetUtilizationRates(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetTemperature(self, handle: Handle, sensor: int) -> int: ...
    def nvmlDeviceGetPowerUsage(self, handle: Handle) -> int: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetTotalEccErrors(self, handle: Handle, errorType: int, counterType: int) -> int: ...
    def nvmlDeviceGetMigMode(self, device: Handle) -> Sequence[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, device: Handle) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Handle, index: int) -> Handle: ...
    def nvmlEventSetCreate(self) -> Handle: ...
    def nvmlEventSetFree(self, eventSet: Handle) -> None: ...
    def nvmlEventSetWait_v2(self, eventSet: Handle, timeoutms: int) -> Any: ...
    def nvmlDeviceRegisterEvents(self, handle: Handle, eventTypes: int, eventSet: Handle) -> None: ...
    def nvmlDeviceGetPciInfo(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetTopologyCommonAncestor(self, device1: Handle, device2: Handle) -> int: ...
    def nvmlDeviceGetNvLinkState(self, device: Handle, link: int) -> int: ...
    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: Handle, link: int) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Card:
    """A GPU, or one MIG instance of a GPU."""

    uuid: str
    #: NVML's index, which is CUDA's under ``CUDA_DEVICE_ORDER=PCI_BUS_ID``; a MIG instance has its GPU's.
    index: int
    #: Number of the MIG instance on its GPU; None for a whole GPU.
    instance: int | None
    name: str
    #: Bytes.
    memory: int
    handle: Handle


def load() -> Nvml | None:
    """NVML of this machine, initialised; None where there is no NVIDIA driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    library: Nvml = pynvml
    return library


def cards(nvml: Nvml) -> list[Card]:
    """All GPUs that answer, those with MIG as their instances."""
    found: list[Card] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = ask(nvml, partial(nvml.nvmlDeviceGetHandleByIndex, index))
        if handle is None:
            continue
        parts = list(_instances(nvml, handle)) or [(None, handle)]
        asked = (ask(nvml, partial(_card, nvml, part, index, instance)) for instance, part in parts)
        found += [card for card in asked if card is not None]
    return found


def _instances(nvml: Nvml, handle: Handle) -> Iterator[tuple[int | None, Handle]]:
    mode = ask(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle))
    if mode is None or not mode[0]:
        return
    for instance in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        part = ask(nvml, partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, instance))
        if part is not None:
            yield instance, part


def _card(nvml: Nvml, handle: Handle, index: int, instance: int | None) -> Card:
    return Card(
        uuid=nvml.nvmlDeviceGetUUID(handle),
        index=index,
        instance=instance,
        name=nvml.nvmlDeviceGetName(handle),
        memory=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        handle=handle,
    )


#: Major number of ``/dev/nvidia0`` and its like.
MAJOR: Final = 195


def device_files(nvml: Nvml) -> dict[str, tuple[int, int]]:
    """Major and minor numbers of the GPUs' device files, by UUID; nothing where there are MIG instances.

    Those are opened by files of their own beside that of their GPU.
    """
    found = {}
    for card in cards(nvml):
        if card.instance is not None:
            return {}
        minor = ask(nvml, partial(nvml.nvmlDeviceGetMinorNumber, card.handle))
        if minor is not None:
            found[card.uuid] = MAJOR, minor
    return found


def readings(nvml: Nvml, card: Card) -> dict[str, float]:
    """Percent, bytes, degrees Celsius and watts, as far as the card tells (a MIG instance has only memory)."""
    handle = card.handle
    asked: dict[str, Callable[[], float]] = {
        "utilization": lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "memory_used": lambda: float(nvml.nvmlDeviceGetMemoryInfo(handle).used),
        "temperature": lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        "power": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    }
    answers = {name: ask(nvml, question) for name, question in asked.items()}
    return {name: value for name, value in answers.items() if value is not None}


def uncorrected_errors(nvml: Nvml, gpu: Handle) -> int | None:
    """Errors of a GPU's memory since its last reset that ECC could not correct; None for a GPU without ECC."""
    kind, counter = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    return ask(nvml, lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, counter))


def processes(nvml: Nvml, card: Card) -> dict[int, int | None]:
    """Bytes of a card's memory by process that computes on it, as the driver's PID namespace counts them; None where
    the driver does not tell.
    """
    found = ask(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(card.handle)) or ()
    return {int(each.pid): each.usedGpuMemory for each in found}


def ask(nvml: Nvml, question: Callable[[], Answer]) -> Answer | None:
    """The answer, or None where this card does not support the question or has fallen off the bus."""
    try:
        return question()
    except nvml.NVMLError:
        return None
