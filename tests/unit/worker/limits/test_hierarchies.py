from pathlib import Path

import pytest

from worker.limits.hierarchies import Controller, Hierarchy, usable


class Machine:
    """A tree of cgroup mounts in a folder, and what ``/proc/self`` says of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.proc = root / "proc"
        self.proc.mkdir()
        self.mounts: list[str] = ["22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"]
        self.own: list[str] = []

    def first(self, controllers: str, own: str, shows: str = "/") -> Path:
        """Mounts a hierarchy of version 1; returns the mount point."""
        point = self.root / controllers
        (point / own.removeprefix(shows).lstrip("/")).mkdir(parents=True, exist_ok=True)
        number = len(self.mounts)
        self.mounts.append(f"{number} 1 0:{number} {shows} {point} rw shared:9 - cgroup cgroup rw,{controllers}")
        self.own.append(f"{number}:{controllers}:{own}")
        return point

    def unified(self, own: str, offered: str, enabled: str) -> Path:
        """Mounts the hierarchy of version 2, in whose files every write stays as it is."""
        point = self.root / "unified"
        for folder in (point, point / own.lstrip("/"), (point / own.lstrip("/")).parent):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.controllers").write_text(f"{offered}\n")
            (folder / "cgroup.subtree_control").write_text(f"{enabled}\n")
        self.mounts.append(f"90 1 0:90 / {point} rw - cgroup2 cgroup2 rw,nsdelegate")
        self.own.append(f"0::{own}")
        return point

    def usable(self, *, root: bool = True) -> dict[Controller, Hierarchy]:
        (self.proc / "mountinfo").write_text("\n".join(self.mounts))
        (self.proc / "cgroup").write_text("\n".join(self.own))
        return usable(self.proc, root=root)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_groups_of_version_1_lie_below_the_workers_own(machine: Machine) -> None:
    memory = machine.first("memory", "/system.slice/worker.service")
    cpu = machine.first("cpu,cpuacct", "/")
    assert machine.usable() == {
        Controller.MEMORY: Hierarchy(version=1, base=memory / "system.slice" / "worker.service"),
        Controller.CPU: Hierarchy(version=1, base=cpu),
    }


def test_a_container_sees_its_own_group_as_the_mount(machine: Machine) -> None:
    pids = machine.first("pids", "/docker/abc", shows="/docker/abc")
    assert machine.usable()[Controller.PIDS].base == pids


def test_the_unified_hierarchy_is_used_at_the_top_by_root(machine: Machine) -> None:
    top = machine.unified("/user.slice/session-1.scope", "cpuset cpu io memory pids", "cpu memory pids cpuset")
    found = machine.usable()
    assert found.keys() == set(Controller)
    assert {(each.version, each.base) for each in found.values()} == {(2, top)}


def test_a_delegated_group_is_used_beside_the_workers_subgroup(machine: Machine) -> None:
    top = machine.unified("/system.slice/w.service/worker", "memory pids", "memory pids")
    for root in (True, False):
        assert {each.base for each in machine.usable(root=root).values()} == {top / "system.slice" / "w.service"}


def test_without_root_and_without_a_delegated_group_there_is_none(machine: Machine) -> None:
    machine.unified("/user.slice/session-1.scope", "memory pids", "memory pids")
    assert machine.usable(root=False) == {}


def test_what_the_unified_hierarchy_lacks_is_enabled(machine: Machine) -> None:
    top = machine.unified("/", "memory pids", "pids")
    assert machine.usable().keys() == {
        Controller.DEVICES
    }  # the kernel would list it, a plain file keeps the word that was written
    assert (top / "cgroup.subtree_control").read_text() == "+memory"


def test_devices_are_filtered_by_version_1_where_it_has_them(machine: Machine) -> None:
    machine.first("devices", "/")
    machine.unified("/", "", "")
    assert machine.usable()[Controller.DEVICES].version == 1


def test_without_root_no_devices_are_filtered(machine: Machine) -> None:
    machine.unified("/user.slice/w.service/worker", "memory", "memory")
    assert machine.usable(root=False).keys() == {Controller.MEMORY}
