"""Agreement of all ranks where each must find out for itself, such as whether its data are there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

from trainer.exceptions import DownloadError

#: How long ranks wait for the slowest disk. A rank that dies ends the wait at once: gloo sees its connection close.
PATIENCE = timedelta(days=2)
T = TypeVar("T")


def agreed(work: Callable[[], T]) -> T:
    """Do the work on this rank and wait for the others to have done theirs; all ranks call it.

    Where the work raised DownloadError on any rank, every rank raises one that says on which and why.
    """
    result, problem = _attempted(work)
    problems = {rank: found for rank, found in enumerate(_everybodys(problem)) if found is not None}
    if problems:
        raise DownloadError("\n".join(f"rank {rank}: {found}" for rank, found in problems.items()))
    assert result is not None
    return result


def _attempted(work: Callable[[], T]) -> tuple[T | None, str | None]:
    try:
        return work(), None
    except DownloadError as error:
        return None, str(error)


def _everybodys(problem: str | None) -> list[str | None]:
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return [problem]
    problems: list[str | None] = [None] * dist.get_world_size()
    with _patient_group() as group:
        dist.all_gather_object(problems, problem, group=group)
    return problems


@contextmanager
def _patient_group() -> Iterator[Any]:
    """Return a group of all ranks over gloo: NCCL's watchdog and the run's own time-out would end a long download."""
    if dist.get_backend() == "mpi":  # has no other groups than its own, and no time-out
        yield dist.group.WORLD
        return
    group = dist.new_group(backend="gloo", timeout=PATIENCE)
    try:
        yield group
    finally:
        dist.destroy_process_group(group)
