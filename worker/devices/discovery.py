"""The devices that a node offers: its GPUs, or CPU slots where there are none."""

import os
from collections.abc import Mapping

import psutil

from torchyard.wire import Device, DeviceKind, Topology
from worker.devices import nvml as library
from worker.devices.topology import CachedTopology

#: MIG instances are numbered apart from whole GPUs: GPU 2's instance 3 is 1023.
_MIG_BASE = 1000


def discover(
    nvml: library.Nvml | None,
    cpu_slots: int | None = None,
    own: Mapping[str, str] = os.environ,
    topology: CachedTopology | None = None,
) -> list[Device]:
    """All devices of this machine. `cpu_slots`, if given, are offered instead of GPUs.

    A worker that runs under CUDA_VISIBLE_DEVICES (`own` is its environment) offers only what is named there.
    """
    if cpu_slots is None and nvml is not None:
        cards = library.cards(nvml)
        near = topology.of(cards) if topology else {}
        gpus = _visible([_gpu(card, near.get(card.uuid)) for card in cards], own.get("CUDA_VISIBLE_DEVICES"))
        if gpus:
            return gpus
    return _slots(os.cpu_count() or 1 if cpu_slots is None else cpu_slots)


def _gpu(card: library.Card, near: Topology | None) -> Device:
    index = card.index if card.instance is None else _MIG_BASE + 10 * card.index + card.instance
    return Device(uuid=card.uuid, index=index, kind=DeviceKind.GPU, name=card.name, memory=card.memory, topology=near)


def _visible(gpus: list[Device], names: str | None) -> list[Device]:
    if not names:
        return gpus
    wanted = names.replace(" ", "").split(",")
    return [
        gpu for gpu in gpus if str(gpu.index) in wanted or any(name and gpu.uuid.startswith(name) for name in wanted)
    ]


def _slots(count: int) -> list[Device]:
    memory = psutil.virtual_memory().total // max(1, count)
    return [
        Device(uuid=f"cpu-{index}", index=index, kind=DeviceKind.CPU_SLOT, name="CPU slot", memory=memory)
        for index in range(count)
    ]
