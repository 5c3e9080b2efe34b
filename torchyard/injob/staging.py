"""Copies of tensors in host memory that is used again: what a thread writes while the training goes on.

The tests run it on the CPU; from a GPU it was never run.
"""

from __future__ import annotations

import collections
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: Bytes from which on threads copy faster than one.
LARGE = 16 << 20


def taken(tensor: Any) -> Any:
    """The tensor itself on the CPU, for a training that waits until it is written. It shares no larger memory."""
    if hasattr(tensor, "device_mesh"):
        return tensor.detach()
    found = tensor.detach().cpu()
    return found if found.untyped_storage().nbytes() == found.nbytes else found.clone()


class Staging:
    """Copies one snapshot after the other; a buffer is used again where the next one has a like tensor in its place.

    The copies are there when `finish` returns: made by several threads, since one alone does not fill the memory's
    bandwidth, or by the GPU into pinned buffers.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = []
        self._used = 0
        self._copies: dict[Any, Any] = {}
        self._waiting: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        """A new snapshot: the last one is not used any more."""
        self._used = 0
        self._copies.clear()
        self._waiting.clear()

    def copy(self, tensor: Any) -> Any:
        """A copy of the tensor on the CPU. Tensors that share their memory, as tied weights do, share a copy."""
        tensor = tensor.detach()
        if hasattr(tensor, "device_mesh"):
            # Only the local part moves. The public `from_local` would bring it back to the mesh's devices.
            return type(tensor)(self.copy(tensor.to_local()), tensor._spec, requires_grad=False)
        key = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() == 0 or key not in self._copies:
            self._copies[key] = self._buffer(tensor)
            self._waiting.append((self._copies[key], tensor))
        return self._copies[key]

    def finish(self) -> None:
        """Fill the copies."""
        streams = set()
        for buffer, tensor in self._waiting:
            if tensor.is_cuda:
                buffer.copy_(tensor, non_blocking=True)
                streams.add(sys.modules["torch"].cuda.current_stream(tensor.device))
        on_host = [pair for pair in self._waiting if not pair[1].is_cuda]
        if sum(tensor.nbytes for _, tensor in on_host) < LARGE:
            collections.deque(map(_fill, on_host), maxlen=0)
        else:
            with ThreadPoolExecutor(_threads()) as pool:
                collections.deque(pool.map(_fill, on_host), maxlen=0)
        for stream in streams:
            stream.synchronize()
        self._copies.clear()
        self._waiting.clear()

    def _buffer(self, tensor: Any) -> Any:
        if self._used == len(self._buffers):
            self._buffers.append(_like(tensor))
        elif not _fits(self._buffers[self._used], tensor):
            self._buffers[self._used] = _like(tensor)
        self._used += 1
        return self._buffers[self._used - 1]


def _fill(pair: tuple[Any, Any]) -> None:
    buffer, tensor = pair
    buffer.copy_(tensor)


def _threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


def _like(tensor: Any) -> Any:
    return sys.modules["torch"].empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)


def _fits(buffer: Any, tensor: Any) -> bool:
    return bool(
        buffer.shape == tensor.shape
        and buffer.dtype == tensor.dtype
        and buffer.stride() == tensor.stride()
        and buffer.is_pinned() == tensor.is_cuda
    )
