"""Topology of a node's GPUs: NVLink, PCIe switches, NUMA nodes."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from torchyard.wire import LinkLevel, Topology
from worker.devices import nvml as library

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")
#: What NVML calls the common ancestor of two devices (`nvmlGpuTopologyLevel_t`).
_LEVELS: Final = {
    0: LinkLevel.PIX,  # two chips of one board
    10: LinkLevel.PIX,
    20: LinkLevel.PXB,
    30: LinkLevel.PHB,
    40: LinkLevel.NODE,
    50: LinkLevel.SYS,
}
_BUS_ID: Final = re.compile(r"([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])")


def read(nvml: library.Nvml, cards: Sequence[library.Card], sysfs: Path = PCI_DEVICES) -> dict[str, Topology]:
    """Return the links by UUID; a MIG instance is nobody's peer, so whole GPUs alone have one."""
    whole = [card for card in cards if card.instance is None]
    buses = {card.uuid: _bus_id(nvml, card) for card in whole}
    wired = {card.uuid: _wired(nvml, card) for card in whole}
    switched = {uuid for uuid, ends in wired.items() if ends - set(buses.values())}
    found = {}
    for card in whole:
        links = {}
        for other in whole:
            both_switched = {card.uuid, other.uuid} <= switched
            direct = buses[other.uuid] in wired[card.uuid]
            if other is not card and (level := _level(nvml, card, other, wired=direct or both_switched)):
                links[other.uuid] = level
        found[card.uuid] = Topology(numa=_numa(sysfs, buses[card.uuid]), links=links)
    return found


def _level(nvml: library.Nvml, card: library.Card, other: library.Card, *, wired: bool) -> LinkLevel | None:
    if wired:
        return LinkLevel.NVLINK
    ancestor = library.ask(nvml, lambda: nvml.nvmlDeviceGetTopologyCommonAncestor(card.handle, other.handle))
    return None if ancestor is None else _LEVELS.get(int(ancestor))


def _wired(nvml: library.Nvml, card: library.Card) -> set[str]:
    """Bus ids at the other ends of the card's live NVLinks: another GPU's, or a switch's that many GPUs meet at."""
    ends = set()
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if library.ask(nvml, partial(nvml.nvmlDeviceGetNvLinkState, card.handle, link)):
            remote = library.ask(nvml, partial(nvml.nvmlDeviceGetNvLinkRemotePciInfo, card.handle, link))
            ends |= {end for end in (_plain(remote),) if end}
    return ends


def _bus_id(nvml: library.Nvml, card: library.Card) -> str | None:
    return _plain(library.ask(nvml, lambda: nvml.nvmlDeviceGetPciInfo(card.handle)))


def _plain(info: Any) -> str | None:
    """``0000:44:00.0``, as the kernel writes it: NVML's domain has four digits more."""
    if info is None:
        return None
    text = info.busId.decode() if isinstance(info.busId, bytes) else str(info.busId)
    found = _BUS_ID.fullmatch(text.lower())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}" if found else None


def _numa(sysfs: Path, bus_id: str | None) -> int | None:
    """None where the machine has one NUMA node only, which the kernel calls -1, or does not tell."""
    try:
        node = int((sysfs / (bus_id or "none") / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


class CachedTopology:
    """The topology of cards, asked of the driver only when other cards are there: it costs a call for each link."""

    def __init__(self, nvml: library.Nvml, ask: Callable[..., dict[str, Topology]] = read) -> None:
        self._nvml = nvml
        self._ask = ask
        self._cards: tuple[str, ...] = ()
        self._found: dict[str, Topology] = {}

    def of(self, cards: Sequence[library.Card]) -> dict[str, Topology]:
        """Read the topology once, then return the same."""
        uuids = tuple(card.uuid for card in cards)
        if uuids != self._cards:
            self._found = self._ask(self._nvml, cards)
            self._cards = uuids
        return self._found
