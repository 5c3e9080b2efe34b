"""Groups that an attempt needs, and the values of their files: pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from worker.limits import cores
from worker.limits.hierarchies import Controller, Hierarchies

#: Length of a period of CPU time, in microseconds.
PERIOD_US: Final = 100_000
#: Files of versions 1 and 2 with the kernel's counters: processes that were killed for want of memory, memory that was
#: in use at most (version 2 counts how often the limit was in the way instead), and is but for the page cache.
_OOM: Final = {1: ("memory.oom_control", ["oom_kill"]), 2: ("memory.events", ["oom_kill"])}
_REACHED: Final = {1: ("memory.max_usage_in_bytes", list[str]()), 2: ("memory.events", ["oom"])}
_USED: Final = {1: ("memory.stat", ["total_rss", "total_shmem"]), 2: ("memory.stat", ["anon", "shmem"])}


#: Major and minor number of a character device.
DeviceNumber = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class AttemptLimits:
    """The most that an attempt may use."""

    processes: int
    """Processes and threads."""
    memory: int | None = None
    """Bytes; None: no limit."""
    cpus: int | None = None
    """Cores; None: no limit."""
    cores: frozenset[int] = frozenset()
    """The cores themselves, where they can be given; none: any."""
    memory_nodes: str = "0"
    """Memory nodes that go with them; only version 1 asks."""
    denied: tuple[DeviceNumber, ...] = ()
    """Character devices that must not be opened."""


@dataclass(frozen=True, kw_only=True)
class Cgroup:
    """One group, and the files that are written in it, in this order."""

    folder: Path
    files: tuple[tuple[str, str], ...]
    denied: tuple[DeviceNumber, ...] = ()
    """Devices that a filter refuses (`worker.limits.device_filter`), as version 2 has no file for them."""


def groups(name: str, limits: AttemptLimits, hierarchies: Hierarchies) -> list[Cgroup]:
    """The groups of this name that hold an attempt to its limits, as far as there are controllers."""
    files: dict[Path, list[tuple[str, str]]] = {}
    for controller, hierarchy in hierarchies.items():
        written = list(_files(controller, hierarchy.version, limits, hierarchies))
        if written or controller is Controller.MEMORY:  # which tells the peak of a job without a limit, too
            files.setdefault(hierarchy.base / name, []).extend(written)
    devices = hierarchies.get(Controller.DEVICES)
    filtered = devices.base / name if devices is not None and devices.version == 2 and limits.denied else None
    if filtered is not None:
        files.setdefault(filtered, [])
    return [
        Cgroup(folder=folder, files=tuple(written), denied=limits.denied if folder == filtered else ())
        for folder, written in files.items()
    ]


def _files(
    controller: Controller, version: int, limits: AttemptLimits, hierarchies: Hierarchies
) -> Iterator[tuple[str, str]]:
    match controller:
        case Controller.MEMORY if limits.memory is not None:
            yield from _memory(version, limits.memory)
        case Controller.PIDS:
            yield "pids.max", str(limits.processes)
        case Controller.CPUSET if limits.cores:
            yield "cpuset.cpus", cores.write(limits.cores)
            if version == 1:
                yield "cpuset.mems", limits.memory_nodes
        case Controller.CPU if limits.cpus is not None and Controller.CPUSET not in hierarchies:
            yield from _quota(version, limits.cpus)
        case Controller.DEVICES if version == 1:
            yield from (("devices.deny", f"c {major}:{minor} rwm") for major, minor in limits.denied)


def _memory(version: int, size: int) -> Iterator[tuple[str, str]]:
    """Main memory, and no swap beyond it."""
    if version == 1:
        yield "memory.limit_in_bytes", str(size)
        yield "memory.memsw.limit_in_bytes", str(size)
    else:
        yield "memory.max", str(size)
        yield "memory.swap.max", "0"
        # All of the job dies with the process that asks for too much.
        yield "memory.oom.group", "1"


def _quota(version: int, cpus: int) -> Iterator[tuple[str, str]]:
    if version == 1:
        yield "cpu.cfs_period_us", str(PERIOD_US)
        yield "cpu.cfs_quota_us", str(cpus * PERIOD_US)
    else:
        yield "cpu.max", f"{cpus * PERIOD_US} {PERIOD_US}"


#: Files that some kernels lack: they count no swap.
OPTIONAL: Final = frozenset({"memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group"})


def refused_processes(name: str, hierarchies: Hierarchies) -> dict[str, Any] | None:
    """File and line in which the kernel counts processes and threads that it refused; for the shim."""
    pids = hierarchies.get(Controller.PIDS)
    return None if pids is None else {"file": str(pids.base / name / "pids.events"), "names": ["max"]}


def counters(name: str, limit: int | None, hierarchies: Hierarchies) -> dict[str, Any]:
    """Files and lines in which the kernel counts kills for want of memory, and memory in use; for the shim.

    With a limit also the counter, and its value, by which its own limit is told from a node that is full.
    """
    memory = hierarchies.get(Controller.MEMORY)
    if memory is None:
        return {"oom": None, "reached": None, "used": None}
    folder = memory.base / name

    def counter(of_version: dict[int, tuple[str, list[str]]]) -> dict[str, Any]:
        file, names = of_version[memory.version]
        return {"file": str(folder / file), "names": names}

    at_least = limit - limit // 64 if limit is not None and memory.version == 1 else 1
    return {
        "oom": counter(_OOM) | {"at_least": 1},
        "reached": None if limit is None else counter(_REACHED) | {"at_least": at_least},
        "used": counter(_USED),
    }
