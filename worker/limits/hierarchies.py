"""The machine's cgroup hierarchies, and the folder in each below which the groups of attempts are made."""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

logger = logging.getLogger(__name__)

#: Subgroup that systemd starts the worker in (`DelegateSubgroup=`), so that version 2 allows groups beside it.
SUBGROUP: Final = "worker"
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class Controller(StrEnum):
    """The kernel's controllers that limits are set with."""

    MEMORY = "memory"
    CPU = "cpu"
    CPUSET = "cpuset"
    PIDS = "pids"
    DEVICES = "devices"


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """Tree of groups, and the folder in it that holds those of attempts."""

    version: int
    """1, or 2 for the unified one."""
    base: Path


Hierarchies = dict[Controller, Hierarchy]


@dataclass(frozen=True, kw_only=True)
class _Mount:
    version: int
    point: Path
    root: str
    """Group that the mount point shows."""
    options: frozenset[str]
    """Names of the controllers among others; of version 1."""


def usable(proc: Path = Path("/proc/self"), *, root: bool | None = None) -> Hierarchies:
    """The hierarchies in which this process may make groups with limits, by controller; none where it may not."""
    root = os.geteuid() == 0 if root is None else root
    try:
        mounts = list(_mounts((proc / "mountinfo").read_text()))
        own = _own((proc / "cgroup").read_text())
    except OSError:
        return {}
    found: Hierarchies = {}
    # A controller is of one version alone but for devices, which version 2 filters by a program.
    for mount in sorted(mounts, key=lambda mount: -mount.version):
        found |= _first(mount, own) if mount.version == 1 else _unified(mount, own.get("", "/"), root=root)
    return {controller: each for controller, each in found.items() if _writable(each)}


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """The cgroup mounts of ``/proc/self/mountinfo``."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(kind) == 3 and kind[0] in {"cgroup", "cgroup2"}:
            root, point = (_OCTAL.sub(lambda match: chr(int(match[1], 8)), field) for field in fields[3:5])
            version = 2 if kind[0] == "cgroup2" else 1
            yield _Mount(version=version, point=Path(point), root=root, options=frozenset(kind[2].split(",")))


def _own(membership: str) -> dict[str, str]:
    """The groups of a process by controller, from ``/proc/self/cgroup``; that of version 2 under an empty name."""
    lines = (line.split(":", 2) for line in membership.splitlines())
    return {name: path for _, names, path in lines for name in names.split(",")}


def _folder(mount: _Mount, group: str) -> Path:
    """The folder of a group; the mount point if the mount does not show that group."""
    inside = PurePosixPath(group)
    return mount.point / inside.relative_to(mount.root) if inside.is_relative_to(mount.root) else mount.point


def _first(mount: _Mount, own: dict[str, str]) -> Hierarchies:
    """Version 1: groups lie below the worker's own, whose limits hold for them as well."""
    return {
        controller: Hierarchy(version=1, base=_folder(mount, own[controller]))
        for controller in Controller
        if controller in mount.options and controller in own
    }


def _unified(mount: _Mount, own: str, *, root: bool) -> Hierarchies:
    """Version 2: below the group that was delegated; root takes the top where none was, as container engines do.

    A group that holds processes can have no groups with controllers below it, so the worker's own will not do.
    """
    folder = _folder(mount, own)
    delegated = folder.name == SUBGROUP and os.access(folder.parent / "cgroup.subtree_control", os.W_OK)
    if not delegated and not root:
        return {}
    base = folder.parent if delegated else mount.point
    offered = [each for each in Controller if each in _words(base / "cgroup.controllers")]
    _enable(base, set(offered) - set(_words(base / "cgroup.subtree_control")))
    enabled = _words(base / "cgroup.subtree_control")
    usable = [each for each in offered if each in enabled]
    if root:
        usable.append(Controller.DEVICES)
    return {controller: Hierarchy(version=2, base=base) for controller in usable}


def _enable(base: Path, controllers: Iterable[str]) -> None:
    for controller in sorted(controllers):
        try:
            (base / "cgroup.subtree_control").write_text(f"+{controller}")
        except OSError as error:
            logger.warning("the cgroup controller %s cannot be used below %s: %s", controller, base, error)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _writable(hierarchy: Hierarchy) -> bool:
    """Return whether a group can be made there, by making one."""
    probe = hierarchy.base / f"torchyard-probe-{os.getpid()}"
    try:
        probe.mkdir(exist_ok=True)
        probe.rmdir()
    except OSError:
        return False
    return True
