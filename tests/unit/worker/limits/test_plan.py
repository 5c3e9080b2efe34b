from pathlib import Path

import pytest

from worker.limits import plan
from worker.limits.hierarchies import Controller, Hierarchies, Hierarchy
from worker.limits.plan import AttemptLimits, Cgroup

ALL = AttemptLimits(
    processes=100, memory=1 << 30, cpus=2, cores=frozenset({4, 5}), memory_nodes="0-1", denied=((195, 1), (195, 3))
)
FIRST: Hierarchies = {each: Hierarchy(version=1, base=Path("/v1") / each) for each in Controller}
SECOND: Hierarchies = {each: Hierarchy(version=2, base=Path("/v2")) for each in Controller}


def without(hierarchies: Hierarchies, controller: Controller) -> Hierarchies:
    return {name: each for name, each in hierarchies.items() if name is not controller}


def test_version_1_has_a_group_in_each_hierarchy() -> None:
    assert plan.groups("job", ALL, FIRST) == [
        Cgroup(
            folder=Path("/v1/memory/job"),
            files=(("memory.limit_in_bytes", "1073741824"), ("memory.memsw.limit_in_bytes", "1073741824")),
        ),
        Cgroup(folder=Path("/v1/cpuset/job"), files=(("cpuset.cpus", "4,5"), ("cpuset.mems", "0-1"))),
        Cgroup(folder=Path("/v1/pids/job"), files=(("pids.max", "100"),)),
        Cgroup(
            folder=Path("/v1/devices/job"),
            files=(("devices.deny", "c 195:1 rwm"), ("devices.deny", "c 195:3 rwm")),
        ),
    ]


def test_version_2_has_one_group() -> None:
    (group,) = plan.groups("job", ALL, SECOND)
    assert group.folder == Path("/v2/job")
    assert dict(group.files) == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpuset.cpus": "4,5",
        "pids.max": "100",
    }
    assert group.denied == ((195, 1), (195, 3))


def test_devices_alone_are_filtered_by_version_2_where_version_1_has_the_rest() -> None:
    mixed = FIRST | {Controller.DEVICES: SECOND[Controller.DEVICES]}
    *others, group = plan.groups("job", ALL, mixed)
    assert [each.denied for each in others] == [(), (), ()]
    assert group == Cgroup(folder=Path("/v2/job"), files=(), denied=((195, 1), (195, 3)))


@pytest.mark.parametrize(
    ("hierarchies", "quota"),
    [
        (FIRST, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "200000"}),
        (SECOND, {"cpu.max": "200000 100000"}),
    ],
    ids=["v1", "v2"],
)
def test_cores_are_a_quota_where_they_cannot_be_given(hierarchies: Hierarchies, quota: dict[str, str]) -> None:
    made = plan.groups("job", ALL, without(hierarchies, Controller.CPUSET))
    written = {name: value for group in made for name, value in group.files}
    assert written.items() >= quota.items()
    assert "cpuset.cpus" not in written


def test_a_job_that_asks_for_nothing_has_its_processes_bounded_and_its_memory_measured() -> None:
    made = plan.groups("job", AttemptLimits(processes=100), FIRST)
    assert [(group.folder.parent.name, group.files) for group in made] == [
        ("memory", ()),
        ("pids", (("pids.max", "100"),)),
    ]


def test_hierarchies_that_share_a_folder_share_the_group() -> None:
    both = {each: Hierarchy(version=1, base=Path("/both")) for each in (Controller.MEMORY, Controller.PIDS)}
    (group,) = plan.groups("job", ALL, both)
    assert [name for name, _ in group.files] == ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max"]


def test_the_shim_is_told_where_the_kernel_counts() -> None:
    events = {"file": "/v2/job/memory.events", "at_least": 1}
    found = plan.counters("job", 6400, SECOND)
    assert (found["oom"], found["reached"]) == (events | {"names": ["oom_kill"]}, events | {"names": ["oom"]})
    found = plan.counters("job", 6400, FIRST)
    assert found["used"]["file"] == "/v1/memory/job/memory.stat"
    most = {"file": "/v1/memory/job/memory.max_usage_in_bytes", "names": [], "at_least": 6300}
    assert found["reached"] == most
    assert plan.counters("job", None, FIRST)["reached"] is None
    assert set(plan.counters("job", 6400, without(FIRST, Controller.MEMORY)).values()) == {None}
