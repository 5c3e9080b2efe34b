import os
from pathlib import Path

import pytest

from torchyard.spec import Resources
from torchyard.wire import Capability, Device, DeviceKind
from worker.exceptions import UnusableError
from worker.limits import node
from worker.limits.hierarchies import Controller, Hierarchy
from worker.limits.node import NodeLimits

HOME = "0123456789abcdef"
GPU = Device(uuid="GPU-0", index=0, kind=DeviceKind.GPU, name="H200", memory=1)


def unified(base: Path, *controllers: Controller) -> NodeLimits:
    """Limits by version 2, whose files are plain ones here."""
    return NodeLimits(
        hierarchies={each: Hierarchy(version=2, base=base) for each in controllers}, home_id=HOME, processes=100
    )


def test_the_files_of_version_2_are_written(tmp_path: Path) -> None:
    limits = unified(tmp_path, Controller.MEMORY, Controller.PIDS)
    record = limits.create("att-1", Resources(gpus=0, memory="1GiB"))
    group = tmp_path / "torchyard-01234567-att-1"
    assert {path.name: path.read_text() for path in group.iterdir()} == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "100",
    }
    assert record["groups"] == [str(group)]
    assert (record["memory"], record["memory_words"]) == (1 << 30, "1.0 GiB")


def test_an_attempt_gets_cores_that_no_other_has(tmp_path: Path) -> None:
    limits = unified(tmp_path, Controller.CPUSET)
    own = sorted(os.sched_getaffinity(0))
    (tmp_path / "cpuset.cpus.effective").write_text(f"{own[0]}-{own[-1]}")
    other = tmp_path / "torchyard-anothers-att-0"
    other.mkdir()
    (other / "cpuset.cpus").write_text(str(own[0]))
    limits.create("att-1", Resources(gpus=0, cpus=1))
    assert (tmp_path / "torchyard-01234567-att-1" / "cpuset.cpus").read_text() == str(own[1] if own[1:] else own[0])


def test_nothing_runs_without_its_limits(tmp_path: Path) -> None:
    limits = unified(tmp_path / "gone", Controller.PIDS)
    with pytest.raises(UnusableError, match="the limits of its resources cannot be set"):
        limits.create("att-1", Resources(gpus=0))


def test_without_cgroups_the_shim_gets_the_limit_alone() -> None:
    record = NodeLimits(processes=64).create("att-1", Resources(gpus=0, memory="1GiB"))
    assert record == {
        "groups": [],
        "confined": False,
        "memory": 1 << 30,
        "memory_words": "1.0 GiB",
        "processes": 64,
        "refused": None,
        "oom": None,
        "reached": None,
        "used": None,
    }


def test_what_is_enforced_is_said(tmp_path: Path) -> None:
    some = unified(tmp_path, Controller.MEMORY, Controller.CPU)
    assert some.enforced == [Capability.MEMORY_LIMIT, Capability.CPU_LIMIT]
    assert str(some) == "limits of jobs are enforced by cgroup v2: memory, cpu"
    assert some.unenforced is None
    off = NodeLimits(wanted=False).unenforced
    assert off is not None
    assert (off.code, off.message) == ("cgroups-off", "TORCHYARD_CGROUPS=0 switches cgroups off")
    assert NodeLimits().enforced == []
    assert str(NodeLimits()).startswith("limits of jobs are not enforced by the kernel: ")
    assert str(node.of_worker(HOME, cgroups=False)).endswith("kernel: TORCHYARD_CGROUPS=0 switches cgroups off")


def test_gpus_are_enforced_where_there_are_others_to_refuse() -> None:
    devices = {Controller.DEVICES: Hierarchy(version=1, base=Path("/gone"))}
    confining = NodeLimits(hierarchies=devices, others=lambda own: [(195, 0)] if "GPU-0" not in own else [])
    assert confining.enforced == [Capability.GPU_LIMIT]
    assert NodeLimits(hierarchies=devices, others=lambda _: []).enforced == []
    assert NodeLimits(others=lambda _: [(195, 0)]).enforced == []
    assert not confining.create("att-1", Resources(gpus=1), [GPU])["confined"]


def test_the_default_of_processes_leaves_others_some(tmp_path: Path) -> None:
    (tmp_path / "pid_max").write_text("4194304\n")
    (tmp_path / "threads-max").write_text("4000000\n")
    assert node.default_processes(tmp_path) == node.PROCESSES
    (tmp_path / "pid_max").write_text("32768\n")
    assert node.default_processes(tmp_path) == 8192
