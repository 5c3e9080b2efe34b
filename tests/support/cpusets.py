"""A part of the machine's cgroups for one test: cores are chosen among those that its own jobs leave."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from worker.limits.hierarchies import Controller, Hierarchies


@contextmanager
def apart(found: Hierarchies) -> Iterator[Hierarchies]:
    """The hierarchies with a group between, below which no job of another test's worker has cores."""
    cpuset = found.get(Controller.CPUSET)
    if cpuset is None:
        yield found
        return
    shared = {name for name, each in found.items() if each == cpuset}
    group = cpuset.base / f"apart-{secrets.token_hex(6)}"
    group.mkdir()
    try:
        if cpuset.version == 1:
            for name in ("cpus", "mems"):
                (group / f"cpuset.{name}").write_text((cpuset.base / f"cpuset.effective_{name}").read_text())
        else:
            words = [f"+{name}" for name in shared if name is not Controller.DEVICES]  # those are filtered by a program
            (group / "cgroup.subtree_control").write_text(" ".join(words))
        yield {name: replace(each, base=group) if name in shared else each for name, each in found.items()}
    finally:
        group.rmdir()
