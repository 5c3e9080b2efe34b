"""The limits of one node's attempts: their groups are made before they start, and removed when they have ended."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torchyard.ids import AttemptId
from torchyard.quantities import format_size
from torchyard.spec import Resources
from torchyard.wire import Capability, Device, Finding, FindingCode
from worker.exceptions import UnusableError
from worker.limits import cores, device_filter, plan
from worker.limits.hierarchies import Controller, Hierarchies, usable
from worker.shim import cgroups

logger = logging.getLogger(__name__)

#: Processes and threads of an attempt, unless the node's administrator says otherwise.
PROCESSES: Final = 32768
#: Between two SIGKILLs to what is left.
_PAUSE_S: Final = 0.1
_KERNEL: Final = Path("/proc/sys/kernel")
_NODES: Final = Path("/sys/devices/system/node")
_CGROUPS_OFF: Final = Finding(code=FindingCode.CGROUPS_OFF, message="TORCHYARD_CGROUPS=0 switches cgroups off")
_NOT_DELEGATED: Final = Finding(
    code=FindingCode.CGROUPS_NOT_DELEGATED,
    message="the worker is not root, and no cgroup was delegated to it (Delegate=yes, DelegateSubgroup=worker)",
)
_NOT_WRITABLE: Final = Finding(
    code=FindingCode.CGROUPS_NOT_WRITABLE,
    message="no cgroup hierarchy with controllers can be written here, as in most containers",
)


def default_processes(kernel: Path = _KERNEL) -> int:
    """`PROCESSES`, but at most a quarter of those that the kernel can number, so that others are left some."""
    known = [int((kernel / name).read_text()) for name in ("pid_max", "threads-max")]
    return min(PROCESSES, min(known) // 4)


@dataclass(frozen=True, kw_only=True)
class NodeLimits:
    """Limits of the attempts of this node. Every method may be called from any thread."""

    hierarchies: Hierarchies = field(default_factory=dict)
    wanted: bool = True
    """Whether cgroups were not switched off."""
    home_id: str = ""
    """Of the worker's home: other workers on the machine have groups too."""
    processes: int = field(default_factory=default_processes)
    others: Callable[[Sequence[str]], Sequence[plan.DeviceNumber]] | None = None
    """The GPUs of the node beside these (UUIDs), which an attempt must not open; None: it may open all."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def enforced(self) -> list[Capability]:
        """The limits that the kernel holds jobs to on this node."""
        has = self.hierarchies.keys()
        by_limit = {
            Capability.MEMORY_LIMIT: {Controller.MEMORY},
            Capability.CPU_LIMIT: {Controller.CPU, Controller.CPUSET},
            Capability.PROCESS_LIMIT: {Controller.PIDS},
        }
        found = [limit for limit, controllers in by_limit.items() if has & controllers]
        return [*found, Capability.GPU_LIMIT] if self._denied(()) else found

    def __str__(self) -> str:
        """``limits of jobs are enforced by cgroup v1: memory, cpu, process``, or why they are not."""
        versions = sorted({each.version for each in self.hierarchies.values()})
        unenforced = self.unenforced
        if unenforced is not None:
            return f"limits of jobs are not enforced by the kernel: {unenforced.message}"
        names = ", ".join(each.removesuffix("-limit") for each in self.enforced)
        return f"limits of jobs are enforced by cgroup {' and '.join(f'v{each}' for each in versions)}: {names}"

    @property
    def unenforced(self) -> Finding | None:
        """Reason why the kernel holds jobs to no limits here; None where it does."""
        if self.enforced:
            return None
        if not self.wanted:
            return _CGROUPS_OFF
        return _NOT_DELEGATED if os.geteuid() else _NOT_WRITABLE

    @property
    def _prefix(self) -> str:
        return f"torchyard-{self.home_id[:8]}-"

    def create(self, attempt: AttemptId, resources: Resources, devices: Sequence[Device] = ()) -> dict[str, Any]:
        """Make an attempt's groups, again after a try that was cut short; return what the shim needs to know.

        Raises UnusableError: nothing of the job must run without its limits.
        """
        name = f"{self._prefix}{attempt}"
        made: list[plan.Cgroup] = []
        try:
            with self._lock:
                limits = self._limits(resources, devices)
                made, confined = plan.groups(name, limits, self.hierarchies), bool(limits.denied)
                for group in made:
                    _make(group)
        except OSError as error:
            cgroups.remove([str(group.folder) for group in made])
            raise UnusableError(f"the limits of its resources cannot be set on this node: {error}") from error
        memory = resources.memory
        return {
            "groups": [str(group.folder) for group in made],
            "confined": confined,
            "memory": memory,
            "memory_words": None if memory is None else format_size(memory),
            "processes": self.processes,
            "refused": plan.refused_processes(name, self.hierarchies),
            **plan.counters(name, memory, self.hierarchies),
        }

    def _limits(self, resources: Resources, devices: Sequence[Device]) -> plan.AttemptLimits:
        cpuset = self.hierarchies.get(Controller.CPUSET)
        chosen, memory_nodes = frozenset[int](), "0"
        if cpuset is not None and resources.cpus is not None:
            effective = "cpuset.effective_cpus" if cpuset.version == 1 else "cpuset.cpus.effective"
            available = cores.parse((cpuset.base / effective).read_text()) & os.sched_getaffinity(0)
            near = {each.topology.numa for each in devices if each.topology and each.topology.numa is not None}
            chosen = cores.choose(resources.cpus, available, _taken(cpuset.base), _numa_nodes(), near)
            if cpuset.version == 1:
                memory_nodes = (cpuset.base / "cpuset.effective_mems").read_text().strip()
        return plan.AttemptLimits(
            processes=self.processes,
            memory=resources.memory,
            cpus=resources.cpus,
            cores=chosen,
            memory_nodes=memory_nodes,
            denied=self._denied([each.uuid for each in devices]),
        )

    def _denied(self, gpus: Sequence[str]) -> tuple[plan.DeviceNumber, ...]:
        """The devices that an attempt with these GPUs must not open."""
        if self.others is None or Controller.DEVICES not in self.hierarchies:
            return ()
        return tuple(self.others(gpus))

    def sweep(self, held: Callable[[AttemptId], bool]) -> None:
        """Remove what attempts have left that nobody holds any more, and kill what still runs in it."""
        left = {
            path: AttemptId(path.name.removeprefix(self._prefix))
            for base in {hierarchy.base for hierarchy in self.hierarchies.values()}
            for path in base.glob(f"{self._prefix}*")
        }
        for path, attempt in left.items():
            if not held(attempt) and not end_groups({"groups": [str(path)]}):
                logger.warning("%s: its cgroup %s cannot be removed", attempt, path)


def of_worker(
    home_id: str,
    process_limit: int | None = None,
    *,
    cgroups: bool = True,
    others: Callable[[Sequence[str]], Sequence[plan.DeviceNumber]] | None = None,
) -> NodeLimits:
    """The limits of a worker with this home, as far as this machine lets it set some."""
    return NodeLimits(
        hierarchies=usable() if cgroups else {},
        wanted=cgroups,
        home_id=home_id,
        processes=process_limit or default_processes(),
        others=others,
    )


def end_groups(record: Mapping[str, Any], seconds: float = 60.0) -> bool:
    """End whatever is left in an attempt's groups, and remove them; False when some of it outlives SIGKILL."""
    groups, deadline = record.get("groups", []), time.monotonic() + seconds
    while left := cgroups.remove(groups, _PAUSE_S):
        cgroups.kill(left)
        if time.monotonic() > deadline:
            return False
    return True


def _numa_nodes(folder: Path = _NODES) -> dict[int, int]:
    """The NUMA node of each core; empty where the kernel does not tell."""
    found: dict[int, int] = {}
    for path in folder.glob("node[0-9]*/cpulist"):
        found |= dict.fromkeys(cores.parse(path.read_text()), int(path.parent.name.removeprefix("node")))
    return found


def _taken(base: Path) -> list[frozenset[int]]:
    """The cores of each attempt that has some, whichever worker has started it."""
    found = []
    for path in base.glob("torchyard-*/cpuset.cpus"):
        try:
            found.append(cores.parse(path.read_text()))
        except OSError:
            continue  # it has ended meanwhile
    return found


def _make(group: plan.Cgroup) -> None:
    group.folder.mkdir(exist_ok=True)
    for name, value in group.files:
        try:
            (group.folder / name).write_text(value)
        except OSError:
            if name not in plan.OPTIONAL:
                raise
    if group.denied:
        device_filter.attach(group.folder, group.denied)
