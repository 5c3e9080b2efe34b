"""Base of strategies on a device mesh: ranks in rows (data) and columns (tensor), parameters as DTensors.

Rank r has row r // t and column r % t of a mesh with t columns. A row is a tensor group: its ranks see the same samples
and draw the same chance.
Source: https://docs.pytorch.org/docs/stable/distributed.tensor.html
"""

import logging
import warnings
from collections import Counter
from functools import partial
from typing import Any, ClassVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

from trainer.data.sampler import BatchShares
from trainer.distributed.collectives import all_reduce_bytes, local
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.base import Strategy
from trainer.strategies.by_hand import broadcast_tensors, bucketed, pack, unpack
from trainer.strategies.splitting import TensorSplit, plan_of, split

DATA, TENSOR = "data", "tensor"


class MeshStrategy(Strategy):
    """Base of strategies whose parameters are spread over a mesh of data and tensor ranks."""

    equal_passes: ClassVar[bool] = True
    sharded: ClassVar[bool] = True

    def __init__(self, options: Any, world: World, tensor: int) -> None:
        super().__init__(options, world)
        self.tensor = tensor
        self.planned: dict[str, TensorSplit] = {}

    @property
    def shares(self) -> BatchShares:
        return BatchShares(index=self.world.rank // self.tensor, count=self.world.size // self.tensor)

    @property
    def counts(self) -> bool:
        return self.world.rank % self.tensor == 0

    @property
    def chance(self) -> int:
        return self.shares.index

    def wrap(self, model: nn.Module) -> nn.Module:
        self.whole_bytes = sum(parameter.nbytes for parameter in model.parameters())
        self.mesh = init_device_mesh(
            self.world.device.type, (self.shares.count, self.tensor), mesh_dim_names=(DATA, TENSOR)
        )
        if self.tensor > 1:
            self._split(model)
        return self.shard(model)

    def _split(self, model: nn.Module) -> None:
        self.planned = plan_of(model, self.tensor)
        if not self.planned:
            raise RecipeError(
                f"strategy {self.options.name} finds no linear layer of at least {self.tensor} outputs to split over "
                f"{self.tensor} ranks: take another model or strategy"
            )
        # Hints about speed on meshes of two dimensions, and about views: nothing in the model works in place.
        logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
        split(model, self.mesh[TENSOR], self.planned)
        for name, kind in self.planned.items():
            count = torch.compiler.disable(partial(self._count, kind))  # type: ignore[no-untyped-call]
            model.get_submodule(name).register_forward_hook(count)

    def _count(self, kind: TensorSplit, _: nn.Module, arguments: tuple[Tensor], output: Tensor) -> None:
        """Add what a split layer makes this rank send, forward and backward, in a ring; from the sizes."""
        if kind == "rows":
            self.bytes_sent += all_reduce_bytes(output.nbytes, self.tensor)
        elif arguments[0].requires_grad and torch.is_grad_enabled():
            self.bytes_sent += all_reduce_bytes(arguments[0].nbytes, self.tensor)
        if kind == "gathered columns":
            self.bytes_sent += output.nbytes * (self.tensor - 1) // self.tensor

    def shard(self, model: nn.Module) -> nn.Module:
        """Shard over the data ranks what is to be, and bring the rest to the device."""
        return model.to(self.world.device)

    @torch.no_grad()
    def exchange(self) -> None:
        if self.tensor > 1:
            self._average_replicated()
        if self.world.size > 1:
            # As under DDP all ranks take the buffers of rank 0: a checkpoint holds one state of them.
            sent = broadcast_tensors(local(each) for each in self.model.buffers())
            self.bytes_sent += sent * (self.world.size - 1) if self.world.leads else 0

    def _average_replicated(self) -> None:
        """Average gradients that ranks of a tensor group compute alike but for rounding, which must not add up."""
        gradients = [
            local(parameter.grad)
            for parameter in self.parameters()
            if parameter.grad is not None and TENSOR not in spread_over(parameter)
        ]
        for bucket in bucketed(gradients):
            flat = pack(bucket)
            dist.all_reduce(flat, group=self.mesh[TENSOR].get_group())
            unpack(flat.div_(self.tensor), bucket)
            self.bytes_sent += all_reduce_bytes(flat.nbytes, self.tensor)

    def gradient_norm(self) -> Tensor:
        """Sum the squares of this rank's shards over those mesh dimensions that hold other shards; returns the root."""
        pieces: dict[tuple[str, ...], list[Tensor]] = {}
        for parameter in self.parameters():
            if parameter.grad is not None:
                pieces.setdefault(spread_over(parameter), []).append(local(parameter.grad))
        total = torch.zeros((), device=self.world.device)
        for names in sorted(pieces):
            squares = nn.utils.get_total_norm(pieces[names]).square().to(self.world.device)
            for name in names:
                dist.all_reduce(squares, group=self.mesh[name].get_group())
            total += squares
        return total.sqrt()

    def clip(self, limit: float, norm: Tensor) -> None:
        # Tensors on different meshes do not go into one call.
        by_mesh: dict[DeviceMesh | None, list[nn.Parameter]] = {}
        for parameter in self.parameters():
            by_mesh.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
        for parameters in by_mesh.values():
            nn.utils.clip_grads_with_norm_(parameters, limit, norm)

    def whole_state(self) -> dict[str, Tensor]:
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return cast("dict[str, Tensor]", get_model_state_dict(self.model, options=options))

    def proof(self) -> dict[str, Any]:
        return {
            **super().proof(),
            "whole_parameter_bytes": self.whole_bytes,
            "mesh": {DATA: self.shares.count, TENSOR: self.tensor},
            "spread": dict(Counter("x".join(spread_over(each)) or "whole" for each in self.parameters())),
            "split": self.planned,
        }


def spread_over(tensor: Tensor) -> tuple[str, ...]:
    """Dimensions of the mesh over which the tensor lies in pieces."""
    if not isinstance(tensor, DTensor):
        return ()
    names = tensor.device_mesh.mesh_dim_names or ()
    return tuple(name for name, placement in zip(names, tensor.placements, strict=True) if not placement.is_replicate())
