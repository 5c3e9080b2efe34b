"""Fully sharded data parallelism: each rank keeps a piece of every parameter and has whole ones only while it computes.

FSDP2's `fully_shard` on every block and on the model (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023, PyTorch FSDP;
https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html). A block's parameters are gathered before its
forward and again before its backward, and its gradients are averaged in pieces: three times a replica's bytes on the
way for each pass, against two under ddp, for 1/n of the memory. With `tensor_parallel: t` groups of t ranks also split
the linear layers (`splitting.py`), and each of these pieces is sharded over the groups.

Every block must be called through its own forward: a model that uses a child's weights in functions of its own cannot
be sharded so. The steps of the optimizer go from parameter to parameter, which is slow for many small ones. Never run
on more than one GPU.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

# What `set_custom_all_gather` takes has no public name yet.
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter

from torchyard.recipe.strategies import Fsdp
from trainer.distributed.world import World
from trainer.models.blocks import blocks
from trainer.strategies.base import TrainingTask
from trainer.strategies.mesh import DATA, MeshStrategy

#: Its running statistics want full precision, and with them the parameters, as under autocast.
_STATISTICS = nn.modules.batchnorm._BatchNorm


class FsdpStrategy(MeshStrategy):
    """One process per device; parameters, gradients and optimizer state in pieces over the data ranks."""

    options: Fsdp

    def __init__(self, options: Fsdp, world: World) -> None:
        super().__init__(options, world, options.tensor_parallel)

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        self._compute = task.numerics.compute
        # Parameters are gathered in the computing type, which halves the bytes on the way: nothing is left to autocast.
        super().prepare(model, replace(task, numerics=replace(task.numerics, compute=None)))

    def shard(self, model: nn.Module) -> nn.Module:
        for parameter in model.parameters():
            # Pieces have one layout; convolutions of channels_last inputs still compute in NHWC.
            parameter.data = parameter.data.contiguous()
        policy = MixedPrecisionPolicy(param_dtype=self._compute, reduce_dtype=torch.float32)
        self.units = [name for name, _ in blocks(model)]
        for _, block in blocks(model):
            for module in block.modules():
                if self._compute is not None and isinstance(module, _STATISTICS) and module is not block:
                    self._shard(module, policy, reshard_after_forward=self.options.reshard_after_forward)
            self._shard(block, policy, reshard_after_forward=self.options.reshard_after_forward)
        self._shard(model, replace(policy, output_dtype=torch.float32), reshard_after_forward=None)
        return model

    def _shard(self, module: nn.Module, policy: MixedPrecisionPolicy, *, reshard_after_forward: bool | None) -> None:
        if isinstance(module, _STATISTICS):
            policy = MixedPrecisionPolicy()
        sharded = fully_shard(
            module, mesh=self.mesh[DATA], mp_policy=policy, reshard_after_forward=reshard_after_forward
        )
        sharded.set_custom_all_gather(CountedAllGather(self))
        sharded.set_custom_reduce_scatter(CountedReduceScatter(self))

    def compiled(self) -> list[nn.Module]:
        return [self.model.get_submodule(name) for name in self.units]

    @property
    def averaged_over(self) -> int:
        return self.shares.count

    def synchronise(self, last: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(last)

    def end_evaluation(self) -> None:
        # Only backward gives up what is not resharded after forward, the model's own parameters at least: the next pass
        # would compute with what was evaluated, moving averages say.
        for module in self.model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def proof(self) -> dict[str, Any]:
        return {**super().proof(), "units": self.units}


class _Allocated:
    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class CountedAllGather(_Allocated, AllGather):
    """FSDP's own, which adds what a rank sends in a ring: its piece, once for each other rank."""

    def __init__(self, strategy: FsdpStrategy) -> None:
        self._strategy = strategy

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, async_op: bool = False
    ) -> dist.Work | None:
        self._strategy.bytes_sent += input_tensor.nbytes * (group.size() - 1)
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=async_op)


class CountedReduceScatter(_Allocated, ReduceScatter):
    """FSDP's own, which adds what a rank sends in a ring: every piece but its own."""

    def __init__(self, strategy: FsdpStrategy) -> None:
        self._strategy = strategy

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, op: Any, async_op: bool = False
    ) -> dist.Work | None:
        self._strategy.bytes_sent += output_tensor.nbytes * (group.size() - 1)
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
