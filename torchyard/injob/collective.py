"""Agreement between ranks, over the script's own process group.

A gloo group of our own stands beside NCCL: a poll then never waits for the GPU, and a rank that writes a large
checkpoint does not run into NCCL's watchdog while the others wait.
"""

from __future__ import annotations

import atexit
import datetime
import os
import sys
from typing import Any

from torchyard.injob import place

#: How long ranks wait for one that writes a checkpoint.
PATIENCE = datetime.timedelta(hours=6)

#: The default group for which `_group` was made, and our group beside it.
_made_for: Any = None
_group: Any = None
_background_for: Any = None
_background: Any = None


def group_size() -> int | None:
    """Ranks of the process group; None unless `torch.distributed` is initialised."""
    distributed = place.process_group()
    return None if distributed is None else int(distributed.get_world_size())


def world_size() -> int:
    """Ranks that must agree: 1 unless `torch.distributed` is initialised."""
    return group_size() or 1


def broadcast(values: list[int]) -> list[int]:
    """Rank 0's values, on every rank."""
    distributed = place.process_group()
    if distributed is None:
        return values
    tensor, group = _message(distributed, values)
    distributed.broadcast(tensor, 0, group=group)
    return [int(value) for value in tensor.tolist()]


def minimum(value: int) -> int:
    """The smallest of all ranks' values, on every rank."""
    distributed = place.process_group()
    if distributed is None:
        return value
    tensor, group = _message(distributed, [value])
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MIN, group=group)
    return int(tensor.item())


def all_true(value: bool) -> bool:
    """Return whether the value is true on every rank."""
    return bool(minimum(int(value)))


def gathered(value: Any) -> list[Any]:
    """Every rank's value, by rank; empty on all ranks but 0."""
    distributed = place.process_group()
    if distributed is None:
        return [value]
    found = [None] * distributed.get_world_size() if place.rank() == 0 else None
    distributed.gather_object(value, found, group=_host_group(distributed))
    return found or []


def background_group() -> Any:
    """A gloo group for a thread beside the training: what it sends must not mix with what the training sends.

    None without a process group. Every rank comes here at the same call.
    """
    global _background, _background_for  # noqa: PLW0603 (one per process, like the process group itself)
    distributed = place.process_group()
    if distributed is None:
        return None
    if _background_for is not distributed.group.WORLD:
        _background = distributed.new_group(backend="gloo", timeout=PATIENCE)
        _background_for = distributed.group.WORLD
    return _background


def leave_together() -> None:
    """Before a clean exit: waits for the other ranks, and has the process group destroyed if the script does not.

    Without that gloo's threads outlive what they use, and now and then a rank aborts instead of exiting 0.
    """
    if place.process_group() is not None:
        all_true(True)
        atexit.register(_destroy)


def _destroy() -> None:
    distributed = place.process_group()
    if distributed is not None:
        distributed.destroy_process_group()


def _message(distributed: Any, values: list[int]) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    group = _host_group(distributed)
    on_gpu = group is None and distributed.get_backend() == "nccl"
    device = _cuda_device(torch) if on_gpu else "cpu"
    return torch.tensor(values, dtype=torch.int64, device=device), group


def _host_group(distributed: Any) -> Any:
    """A group for CPU tensors; None means the default group. Every rank comes here at the same call."""
    global _group, _made_for  # noqa: PLW0603 (one per process, like the process group itself)
    if "gloo" in distributed.get_backend() or not distributed.is_gloo_available():
        return None
    default = distributed.group.WORLD
    if _made_for is not default:
        _group = distributed.new_group(backend="gloo", timeout=PATIENCE)
        _made_for = default
    return _group


def _cuda_device(torch: Any) -> str:
    index = torch.cuda.current_device() or int(os.environ.get("LOCAL_RANK", "0"))
    return "cuda:%d" % (index % torch.cuda.device_count())
