"""Loader processes outlive a SIGTERM to the group of the job, but not their rank."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from torch.utils.data import DataLoader

from tests.support import ranks
from tests.support.wait import until
from trainer.data.signals import shield_from_sigterm


def loading() -> tuple[Iterator[int], psutil.Process]:
    numbers: Any = range(1000)
    batches = iter(DataLoader(numbers, batch_size=None, num_workers=1, worker_init_fn=shield_from_sigterm))
    next(batches)
    (worker,) = psutil.Process().children()
    return batches, worker


def shielded() -> tuple[int, int | None]:
    """Batches that came after a stranger's SIGTERM; how the worker ended after the rank's own."""
    batches, worker = loading()
    subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
    came = sum(1 for _ in zip(batches, range(50), strict=False))
    own = next(child for child in batches._workers if child.pid == worker.pid)  # type: ignore[attr-defined]
    own.terminate()
    own.join(60)
    return came, own.exitcode


def abandoned(folder: str) -> None:
    _, worker = loading()
    Path(folder, str(worker.pid)).touch()
    time.sleep(600)


def alive(pid: int) -> bool:
    """Not even a zombie whose new parent has not looked yet."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_only_the_rank_ends_its_loaders() -> None:
    assert ranks.run(shielded, 1) == [(50, 0)]


def test_loaders_do_not_outlive_a_killed_rank(tmp_path: Path) -> None:
    with ranks.started(abandoned, 1, str(tmp_path)) as started:
        (told,) = until(lambda: [*tmp_path.iterdir()], what="the loader")
        pid = started.processes[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(int(told.name)), what="the loader's end")
