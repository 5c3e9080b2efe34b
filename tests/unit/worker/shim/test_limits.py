import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from worker.limits import plan
from worker.limits.hierarchies import Controller, Hierarchy
from worker.shim.limits import BOMB, SAMPLE_S, WATCH_S, MemoryWatch, process_limit

MIB = 1 << 20


def record(memory: int | None, **counters: Any) -> dict[str, Any]:
    nothing = {"oom": None, "reached": None, "used": None}
    return {"groups": [], "memory": memory, "memory_words": "1.0 GiB", **nothing, **counters}


def kernels(folder: Path, memory: int | None, version: int = 2) -> dict[str, Any]:
    """Counters as `worker.limits.plan` names them, in a folder."""
    hierarchy = Hierarchy(version=version, base=folder.parent)
    return record(memory, **plan.counters(folder.name, memory, {Controller.MEMORY: hierarchy}))


@contextmanager
def holding(size: int, forks: int = 0) -> Iterator[int]:
    """A child that holds so many MiB, which so many forks of it share; yields the pid of its parent."""
    code = f"""
import os
held = b'x' * ({size} << 20)
all(os.fork() for _ in range({forks}))
print(flush=True)
os.read(0, 1)
"""
    parent = ["sh", "-c", '"$0" -c "$1"; exit', sys.executable, code]
    with subprocess.Popen(parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(forks + 1):
            process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.communicate(b"\n" * (forks + 1))


def test_a_kill_at_the_limit_is_too_much(tmp_path: Path) -> None:
    watch = MemoryWatch(kernels(tmp_path, 1 << 30))
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert watch.too_much(os.getpid(), 0.0) is None
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert watch.too_much(os.getpid(), 0.1) == ("memory-limit", "used more than its memory of 1.0 GiB")
    assert watch.peak == 1 << 30


@pytest.mark.parametrize("limit", [None, 1 << 30])
@pytest.mark.parametrize("version", [1, 2])
def test_a_kill_below_the_limit_is_a_node_that_is_full(tmp_path: Path, version: int, limit: int | None) -> None:
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 1\n")
    (tmp_path / "memory.stat").write_text("anon 70000000\nshmem 0\ntotal_rss 70000000\ntotal_shmem 0\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (tmp_path / "memory.max_usage_in_bytes").write_text(f"{900 << 20}\n")
    words = "the node ran out of memory and the kernel chose this job, which held 66 MiB"
    assert MemoryWatch(kernels(tmp_path, limit, version)).too_much(os.getpid(), 0.0) == ("node-memory", words)
    (tmp_path / "memory.max_usage_in_bytes").write_text(f"{1 << 30}\n")
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    found = MemoryWatch(kernels(tmp_path, limit, version)).too_much(os.getpid(), 0.0)
    assert found is not None
    assert found[0] == ("memory-limit" if limit else "node-memory")


def test_the_most_of_all_samples_is_the_peak(tmp_path: Path) -> None:
    watch = MemoryWatch(kernels(tmp_path, None))
    for second, (anon, shmem) in enumerate([(10, 1), (70, 2), (30, 0)]):
        (tmp_path / "memory.stat").write_text(f"anon {anon}\nfile 900\nshmem {shmem}\n")
        watch.too_much(os.getpid(), second * SAMPLE_S)
    assert watch.peak == 72


def test_nobody_could_look() -> None:
    watch = MemoryWatch(record(None))
    assert watch.too_much(os.getpid(), 0.0) is None
    watch.close()
    assert watch.peak is None


def test_where_the_kernel_does_not_the_shim_looks() -> None:
    with holding(60) as parent:
        enough, little = MemoryWatch(record(500 * MIB)), MemoryWatch(record(50 * MIB))
        assert enough.too_much(parent, 0.0) is None
        said = little.too_much(parent, 0.0)
        assert said is not None
        assert said[0] == "memory-limit"
        assert said[1].startswith("used more than its memory of 1.0 GiB (it held ")
        assert said[1].endswith("this node looks every 2 s)")
        assert little.too_much(parent, WATCH_S / 2) is None


def test_memory_that_forks_share_counts_once() -> None:
    """As the workers of a DataLoader share the data set."""
    with holding(60, forks=3) as parent:
        assert MemoryWatch(record(150 * MIB)).too_much(parent, 0.0) is None


@pytest.mark.parametrize("version", [1, 2])
def test_processes_that_the_kernel_refused_are_told(tmp_path: Path, version: int) -> None:
    hierarchies = {Controller.PIDS: Hierarchy(version=version, base=tmp_path.parent)}
    told = record(None, processes=64, refused=plan.refused_processes(tmp_path.name, hierarchies))
    assert process_limit(told, 1) is None
    (tmp_path / "pids.events").write_text("max 0\n")
    assert process_limit(told, 1) is None
    (tmp_path / "pids.events").write_text("max 3\n")
    assert process_limit(told, 1) == ("process-limit", "reached its limit of 64 processes and threads")
    assert process_limit(told, BOMB) is None
    assert process_limit(record(None, processes=64, refused=plan.refused_processes("any", {})), 1) is None
