"""Batch normalisation with the statistics of all ranks (SyncBatchNorm), on the CPU as well.

PyTorch's (https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html) runs on accelerators only. There
it is taken as it is, which was never run on two GPUs; on the CPU the model's own layers add up by differentiable
all-reduces, so that a recipe can be tried without GPUs.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed._functional_collectives import all_reduce  # where PyTorch sends users of its deprecated one
from torch.nn.modules.batchnorm import _BatchNorm


def synchronised(model: nn.Module, device: torch.device) -> nn.Module:
    """Change the model's batch normalisations to those over all ranks; parameters and their names stay."""
    if device.type != "cpu":
        return nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-any-return,no-untyped-call]
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            # DDP refuses PyTorch's SyncBatchNorm on the CPU, so it is not one.
            module.__class__ = type(f"Synchronised{type(module).__name__}", (_SynchronisedBatchNorm, type(module)), {})
    return model


class _SynchronisedBatchNorm(_BatchNorm):
    """Mixin before the class of a layer. Two all-reduces forward, two backward; ranks may differ in batch size."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise (N, channels, ...); statistics are taken in fp32, or in fp64 of fp64.

        Raises ValueError if all ranks together have one value for each channel.
        """
        self._check_input_dim(inputs)  # type: ignore[no-untyped-call]
        if not self.training:
            return super().forward(inputs)
        others = [dimension for dimension in range(inputs.dim()) if dimension != 1]
        shape = [-1 if dimension == 1 else 1 for dimension in range(inputs.dim())]
        values = inputs.to(torch.promote_types(inputs.dtype, torch.float32))
        here = values.new_tensor([inputs.numel() // inputs.shape[1]])

        sums, count = _added(torch.cat([values.sum(others), here])).tensor_split([-1])
        if count.item() <= 1:
            raise ValueError(  # in PyTorch's words, which the log is searched for
                f"Expected more than 1 value per channel when training, over all ranks, got {tuple(inputs.shape)} here"
            )
        centred = values - (sums / count).view(shape)
        # Not the mean of squares less the square of the mean: that loses its digits where the mean is large.
        squares = _added(centred.square().sum(others))
        result = centred * (squares / count + self.eps).rsqrt().view(shape)
        if self.affine:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        self._track(sums / count, squares / (count - 1))
        return result.to(inputs.dtype)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics as every batch normalisation does."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        rate = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), rate)
        self.running_var.lerp_(variance.to(self.running_var.dtype), rate)


def _added(tensor: Tensor) -> Tensor:
    return all_reduce(tensor, "sum", dist.group.WORLD)  # type: ignore[arg-type,no-any-return]
