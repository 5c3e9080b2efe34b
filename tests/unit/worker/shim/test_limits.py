import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from worker.shim.limits import SAMPLE_S, WATCH_S, MemoryWatch

MIB = 1 << 20


def record(memory: int | None, **counters: Any) -> dict[str, Any]:
    return {"groups": [], "memory": memory, "memory_words": "1.0 GiB", "oom": None, "used": None} | counters


def kernels(folder: Path, memory: int | None) -> dict[str, Any]:
    return record(
        memory,
        oom={"file": str(folder / "memory.events"), "names": ["oom_kill"]},
        used={"file": str(folder / "memory.stat"), "names": ["anon", "shmem"]},
    )


@contextmanager
def holding(size: int, forks: int = 0) -> Iterator[None]:
    """A child that holds so many MiB, which so many forks of it share."""
    code = f"""
import os
held = b'x' * ({size} << 20)
all(os.fork() for _ in range({forks}))
print(flush=True)
os.read(0, 1)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(forks + 1):
            process.stdout.readline()
        try:
            yield
        finally:
            process.communicate(b"\n" * (forks + 1))


def test_a_kill_of_the_kernels_is_too_much(tmp_path: Path) -> None:
    watch = MemoryWatch(kernels(tmp_path, 1 << 30))
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert watch.too_much(os.getpid(), 0.0) is None
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert watch.too_much(os.getpid(), 0.1) == "used more than its memory of 1.0 GiB"
    assert watch.peak == 1 << 30


def test_a_kill_on_a_full_node_is_nothing_that_a_job_without_a_limit_has_done(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("oom_kill 1\n")
    assert MemoryWatch(kernels(tmp_path, None)).too_much(os.getpid(), 0.0) is None


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
    with holding(60):
        enough, little = MemoryWatch(record(500 * MIB)), MemoryWatch(record(50 * MIB))
        assert enough.too_much(os.getpid(), 0.0) is None
        said = little.too_much(os.getpid(), 0.0)
        assert said is not None
        assert said.startswith("used more than its memory of 1.0 GiB (it held ")
        assert said.endswith("this node looks every 2 s)")
        assert little.too_much(os.getpid(), WATCH_S / 2) is None


def test_memory_that_forks_share_counts_once() -> None:
    """As the workers of a DataLoader share the data set."""
    with holding(60, forks=3):
        assert MemoryWatch(record(150 * MIB)).too_much(os.getpid(), 0.0) is None
