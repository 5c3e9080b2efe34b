"""DistributedDataParallel: a replica on each rank, gradients averaged while backward runs.

Li et al. 2020, https://arxiv.org/abs/2006.15704, and
https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html. More than one GPU was
never run here.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from torchyard.recipe.strategies import Ddp
from trainer.distributed.collectives import all_reduce_bytes
from trainer.distributed.comm_hooks import PowerSgdCompression, compression
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.numerics.sync_batch_norm import synchronised
from trainer.strategies.base import Strategy
from trainer.strategies.by_hand import broadcast_tensors


class DdpStrategy(Strategy):
    """One process per device; every process holds the whole model."""

    options: Ddp
    module: DistributedDataParallel

    def __init__(self, options: Ddp, world: World) -> None:
        super().__init__(options, world)
        if len(world.devices) > 1:
            raise RecipeError(
                f"ddp has one device in a process, not {len(world.devices)}: start a process for each, or take "
                "strategy: dp (replicas in one process) or model_parallel (one model over them)"
            )

    def wrap(self, model: nn.Module) -> nn.Module:
        if self.options.sync_batch_norm:
            self.model = model = synchronised(model, self.world.device)
        wrapped = DistributedDataParallel(
            model.to(self.world.device),
            device_ids=[self.world.device] if self.world.device.type == "cuda" else None,
            find_unused_parameters=self.options.find_unused_parameters,
            static_graph=self.options.static_graph,
            bucket_cap_mb=self.options.bucket_cap_mb,
            gradient_as_bucket_view=self.options.gradient_as_bucket_view,
        )
        if not (self.options.find_unused_parameters or self.options.static_graph or has_sparse_gradients(model)):
            fix_bucket_layout(wrapped)
        self._compression = compression(self.options, self.world.device)
        if self._compression is not None:
            wrapped.register_comm_hook(None, self._compression.hook)
        self._uncompressed = all_reduce_bytes(sum(bucket_bytes(wrapped)), self.world.size)
        return wrapped

    @property
    def averaged_over(self) -> int:
        return self.world.size

    def synchronise(self, last: bool) -> None:
        reduce_in_backward(self.module, last)

    def exchange(self) -> None:
        # DDP has done it in backward: only the bytes are counted here.
        if self._compression is None:
            self.bytes_sent += self._uncompressed
        else:
            self.bytes_sent += all_reduce_bytes(self._compression.reduced(), self.world.size)

    def align(self) -> None:
        # DDP shares them before forward, so that after the last step of an epoch they differ.
        broadcast_tensors(self.model.buffers())

    def own(self) -> dict[str, Any]:
        return {"powersgd": self._compression} if isinstance(self._compression, PowerSgdCompression) else {}

    def proof(self) -> dict[str, Any]:
        return {**super().proof(), "hook": self.options.hook, "bucket_bytes": bucket_bytes(self.module)}


def reduce_in_backward(wrapped: DistributedDataParallel, whether: bool) -> None:
    """Switch DDP's reduction on or off, as `no_sync` does, without a block around the pass."""
    # Assigned, even the same value costs microseconds.
    if wrapped.require_backward_grad_sync != whether:
        wrapped.require_backward_grad_sync = whether


def fix_bucket_layout(wrapped: DistributedDataParallel) -> None:
    """Have DDP lay out its buckets before training, from the last parameter to the first.

    By itself it lays them out anew after the first step, in the order in which gradients came. From three ranks on
    the place in a bucket decides in which order values are added up: a run that is resumed, and so takes its first
    step again, would come to other bits.
    """
    model = wrapped.module
    wrapped.module = ParameterProbe(model)
    wrapped(None).backward()  # not without any input: DDP on a GPU takes the first of those that it has moved
    wrapped.module = model
    wrapped.zero_grad()


class ParameterProbe(nn.Module):
    """A stand-in for a model where there are no samples: uses every parameter once."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: None) -> Tensor:  # noqa: ARG002
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        # A model split over devices has them on several.
        return 0 * torch.stack([parameter.sum().float().to(trained[0].device) for parameter in trained]).sum()


def has_sparse_gradients(model: nn.Module) -> bool:
    """True if DDP waits for gradients that the stand-in cannot give."""
    embeddings = (each for each in model.modules() if isinstance(each, (nn.Embedding, nn.EmbeddingBag)))
    return any(each.sparse for each in embeddings)


def bucket_bytes(wrapped: DistributedDataParallel) -> list[int]:
    """Sizes of the buckets as DDP has laid them out at present."""
    told = wrapped._get_ddp_logging_data()  # type: ignore[no-untyped-call] # nothing public tells
    return [int(size) for size in (told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]).split(",")]
