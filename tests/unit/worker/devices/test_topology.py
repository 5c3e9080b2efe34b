from pathlib import Path

import pytest

from tests.support.nvml import Record, RecordedNvml
from torchyard.wire import LinkLevel, Topology
from worker.devices import nvml as library
from worker.devices import topology
from worker.devices.discovery import discover

SWITCH = "00000000:C1:00.0"


def bus(number: int) -> str:
    return f"00000000:{number:02X}:00.0"


def read(nvml: RecordedNvml, sysfs: Path = Path("/nowhere")) -> dict[str, Topology]:
    return topology.read(nvml, library.cards(nvml), sysfs)


def test_cards_that_meet_at_a_switch_of_nvlink(tmp_path: Path) -> None:
    """As in a box of eight: every link of every card ends at a switch."""
    for number, node in ((0x1B, "0"), (0x9C, "1")):
        (tmp_path / f"0000:{number:02x}:00.0").mkdir()
        (tmp_path / f"0000:{number:02x}:00.0" / "numa_node").write_text(f"{node}\n")
    cards = [Record(f"GPU-{n}", bus=bus(n), nvlinks=[SWITCH] * 18) for n in (0x1B, 0x9C)]
    found = read(RecordedNvml(*cards), tmp_path)
    assert found["GPU-27"] == Topology(numa=0, links={"GPU-156": LinkLevel.NVLINK})
    assert found["GPU-156"] == Topology(numa=1, links={"GPU-27": LinkLevel.NVLINK})


def test_bridges_of_nvlink_join_pairs() -> None:
    """Four cards in two pairs; between the pairs the way is over the sockets."""
    far = {"GPU-0": 50, "GPU-1": 50, "GPU-2": 50, "GPU-3": 50}
    pairs = {0: 1, 1: 0, 2: 3, 3: 2}
    cards = [Record(f"GPU-{n}", bus=bus(n + 1), nvlinks=[bus(m + 1)] * 4, ancestors=far) for n, m in pairs.items()]
    found = read(RecordedNvml(*cards))
    assert found["GPU-0"].links == {"GPU-1": LinkLevel.NVLINK, "GPU-2": LinkLevel.SYS, "GPU-3": LinkLevel.SYS}


@pytest.mark.parametrize(
    ("ancestor", "level"), [(10, "pix"), (20, "pxb"), (30, "phb"), (40, "node"), (50, "sys"), (0, "pix")]
)
def test_without_nvlink_the_common_ancestor_counts(ancestor: int, level: str) -> None:
    cards = [Record("GPU-a", bus=bus(1), ancestors={"GPU-b": ancestor}), Record("GPU-b", bus=bus(2))]
    found = read(RecordedNvml(*cards))
    assert found["GPU-a"].links == {"GPU-b": LinkLevel(level)}
    assert found["GPU-b"].links == {}  # where the driver does not tell


def test_a_card_that_tells_nothing_has_no_place() -> None:
    assert read(RecordedNvml(Record("GPU-a"), Record("GPU-b"))) == {"GPU-a": Topology(), "GPU-b": Topology()}


def test_one_numa_node_is_none(tmp_path: Path) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "numa_node").write_text("-1\n")
    assert read(RecordedNvml(Record("GPU-a", bus=bus(1))), tmp_path)["GPU-a"].numa is None


def test_instances_of_mig_have_none_and_devices_carry_theirs() -> None:
    nvml = RecordedNvml(Record("GPU-a", bus=bus(1)), Record("GPU-b", instances=[Record("MIG-1")]))
    devices = discover(nvml, own={}, topology=topology.CachedTopology(nvml))
    assert [(device.uuid, device.topology) for device in devices] == [("GPU-a", Topology()), ("MIG-1", None)]


def test_the_driver_is_asked_again_only_for_other_cards() -> None:
    asked = []

    def read(nvml: library.Nvml, cards: list[library.Card]) -> dict[str, Topology]:
        asked.append([card.uuid for card in cards])
        return {}

    nvml = RecordedNvml(Record("GPU-a"), Record("GPU-b"))
    known = topology.CachedTopology(nvml, read)
    for lost in (False, False, True):
        nvml.cards[1].lost = lost
        known.of(library.cards(nvml))
    assert asked == [["GPU-a", "GPU-b"], ["GPU-a"]]
