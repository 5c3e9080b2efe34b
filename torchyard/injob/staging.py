"""Copies of tensors in host memory that is used again: what a thread writes while the training goes on."""

from __future__ import annotations

import sys
from typing import Any


def taken(tensor: Any) -> Any:
    """The tensor itself on the CPU, for a training that waits until it is written. It shares no larger memory."""
    if hasattr(tensor, "device_mesh"):
        return tensor.detach()
    found = tensor.detach().cpu()
    return found if found.untyped_storage().nbytes() == found.nbytes else found.clone()


class Staging:
    """Copies one snapshot after the other; a buffer is used again where the next one has a like tensor in its place.

    Buffers for CUDA tensors are pinned and filled without waiting; `finish` waits for all at once.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = []
        self._used = 0
        self._copies: dict[Any, Any] = {}
        self._streams: set[Any] = set()

    def begin(self) -> None:
        """A new snapshot: the last one is not used any more."""
        self._used = 0

    def copy(self, tensor: Any) -> Any:
        """A copy of the tensor on the CPU. Tensors that share their memory, as tied weights do, share a copy."""
        tensor = tensor.detach()
        if hasattr(tensor, "device_mesh"):
            # Only the local part moves. The public `from_local` would bring it back to the mesh's devices.
            return type(tensor)(self.copy(tensor.to_local()), tensor._spec, requires_grad=False)
        key = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() == 0 or key not in self._copies:
            self._copies[key] = self._filled(tensor)
        return self._copies[key]

    def _filled(self, tensor: Any) -> Any:
        buffer = self._buffer(tensor)
        buffer.copy_(tensor, non_blocking=tensor.is_cuda)
        if tensor.is_cuda:
            self._streams.add(sys.modules["torch"].cuda.current_stream(tensor.device))
        return buffer

    def _buffer(self, tensor: Any) -> Any:
        if self._used == len(self._buffers):
            self._buffers.append(_like(tensor))
        elif not _fits(self._buffers[self._used], tensor):
            self._buffers[self._used] = _like(tensor)
        self._used += 1
        return self._buffers[self._used - 1]

    def finish(self) -> None:
        """Waits until all copies are there."""
        for stream in self._streams:
            stream.synchronize()
        self._streams.clear()
        self._copies.clear()


def _like(tensor: Any) -> Any:
    return sys.modules["torch"].empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)


def _fits(buffer: Any, tensor: Any) -> bool:
    return bool(
        buffer.shape == tensor.shape
        and buffer.dtype == tensor.dtype
        and buffer.stride() == tensor.stride()
        and buffer.is_pinned() == tensor.is_cuda
    )
