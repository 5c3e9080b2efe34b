"""Communication hooks of DDP: how gradients are compressed on the way, and how many bytes that leaves.

Built on ``torch.distributed.algorithms.ddp_comm_hooks`` (https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html);
PowerSGD is Vogels et al. 2019, https://arxiv.org/abs/1905.13727.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import GradBucket  # type: ignore[attr-defined] # it is documented there
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.futures import Future

from torchyard.recipe.strategies import Ddp


class Compression(ABC):
    """A hook that counts what it hands to the collectives."""

    def __init__(self) -> None:
        self._reduced = 0

    def hook(self, state: None, bucket: GradBucket) -> Future[Tensor]:  # noqa: ARG002 (DDP's protocol)
        """Reduce a bucket, as `DistributedDataParallel.register_comm_hook` asks."""
        future, size = self.reduce(bucket)
        self._reduced += size
        return future

    @abstractmethod
    def reduce(self, bucket: GradBucket) -> tuple[Future[Tensor], int]:
        """Begin the mean over the ranks; returns it, and the bytes that are handed over."""

    def reduced(self) -> int:
        """Bytes handed over since the last call."""
        taken, self._reduced = self._reduced, 0
        return taken


class HalfPrecisionCompression(Compression):
    """Compression of gradients to a type of 16 bits: half the bytes, and its rounding."""

    def __init__(self, hook: Callable[[dist.ProcessGroup, GradBucket], Future[Tensor]]) -> None:
        super().__init__()
        self._hook = hook

    def reduce(self, bucket: GradBucket) -> tuple[Future[Tensor], int]:
        return self._hook(_everybody(), bucket), bucket.buffer().numel() * torch.float16.itemsize


class PowerSgdCompression(Compression):
    """Compression of matrices to products of two narrow ones; what is left out is added to the next step's gradient.

    What was left out is different on each rank and as large as the gradients: it makes checkpoints larger by that much
    for each rank, and is lost when another number of ranks goes on, which begins uncompressed as a new run does.
    """

    def __init__(self, rank: int, start: int, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self._state = PowerSGDState(
            process_group=_everybody(),
            matrix_approximation_rank=rank,
            start_powerSGD_iter=start,
            # The columns of a small batch's gradient may depend on each other: without it they become NaN.
            orthogonalization_epsilon=1e-8,
        )

    def reduce(self, bucket: GradBucket) -> tuple[Future[Tensor], int]:
        before = self._state.total_numel_after_compression
        future = powerSGD_hook(self._state, bucket)
        if bucket.buffer().device.type == "cpu":
            # The hook's later collectives are started by gloo's threads, and must not mix with the next bucket's.
            future.wait()
        elements = self._state.total_numel_after_compression - before or bucket.buffer().numel()
        return future, elements * bucket.buffer().itemsize

    def state_dict(self) -> dict[str, Any]:
        kind, keys, *rest = self._state.rng.get_state(legacy=True)
        return {
            "iter": self._state.iter,
            "errors": dict(self._state.error_dict),
            "p": dict(self._state.p_memory_dict),
            "q": dict(self._state.q_memory_dict),
            "random": [kind, numpy.asarray(keys).tolist(), *rest],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        kind, keys, *rest = state["random"]
        self._state.rng.set_state((kind, numpy.array(keys, dtype=numpy.uint32), *rest))
        self._state.iter = state["iter"]
        for name, target in (("errors", "error_dict"), ("p", "p_memory_dict"), ("q", "q_memory_dict")):
            here = {index: each.to(self._device, copy=True) for index, each in state[name].items()}
            setattr(self._state, target, here)


def compression(options: Ddp, device: torch.device) -> Compression | None:
    """Return the hook of the recipe; None for DDP's own all-reduce, which costs no call into Python."""
    if options.hook == "allreduce":
        return None
    if options.hook == "powersgd":
        return PowerSgdCompression(options.powersgd_rank, options.powersgd_start, device)
    return HalfPrecisionCompression(
        {"bf16": default_hooks.bf16_compress_hook, "fp16": default_hooks.fp16_compress_hook}[options.hook]
    )


def _everybody() -> dist.ProcessGroup:
    group = dist.group.WORLD
    assert group is not None
    return group
