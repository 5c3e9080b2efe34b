"""Activation checkpointing: activations of a segment are dropped after forward and computed again in backward.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost": of n layers in a row, about sqrt(n) pieces keep only
their inputs. Composed blocks (residual blocks, say) are pieces of their own. Costs one more forward pass, and gives the
same numbers: random streams are set back for it, and BatchNorm counts a batch once.
Source: https://docs.pytorch.org/docs/stable/checkpoint.html (without reentrance).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from trainer.exceptions import RecipeError
from trainer.models.blocks import chained


def recompute(modules: Iterable[nn.Module]) -> None:
    """Change the modules, whole models or segments of one, in place; parameters and their names stay.

    Raises RecipeError for one in which nothing can be computed again.
    """
    for module in modules:
        if not _change(module, outermost=True):
            raise RecipeError(
                f"activation_checkpointing finds no blocks and no chain of layers in {type(module).__name__}: leave it "
                "out, or put the layers into nn.Sequential"
            )


def _change(module: nn.Module, *, outermost: bool) -> bool:
    """Return True if there was something to change."""
    layers = chained(module)
    children = list(module.children()) if layers is None else layers
    plain = not any(list(each.children()) for each in children)
    if layers is not None and plain:
        return len(layers) == 1 or _become(module, _RecomputedSegments)
    if layers is None and not outermost and not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
        return bool(children) and _become(module, _RecomputedWhole)
    changed = [_change(each, outermost=False) for each in children]
    return any(changed)


def _become(module: nn.Module, kind: type[nn.Module]) -> bool:
    # Another class, not another forward of this object: copies of it (DataParallel) must compute with their own.
    module.__class__ = type(f"Recomputed{type(module).__name__}", (kind, type(module)), {})
    return True


class _RecomputedWhole(nn.Module):
    """Mixin before a module's own class: all its activations are computed again."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return _checkpointed(partial(super().forward, **options), [self], *arguments)


class _RecomputedSegments(nn.Module):
    """Mixin before the class of a chain. Its last segment keeps its activations: backward begins with them."""

    def forward(self, values: Any) -> Any:
        layers: Sequence[nn.Module] = tuple(self) if isinstance(self, nn.Sequential) else cast("Any", self).in_order
        length = math.ceil(len(layers) / max(2, math.isqrt(len(layers))))
        *pieces, last = [layers[start : start + length] for start in range(0, len(layers), length)]
        for piece in pieces:
            values = _checkpointed(partial(_through, piece), piece, values)
        return _through(last, values)


def _through(layers: Sequence[nn.Module], values: Any) -> Any:
    for layer in layers:
        values = layer(values)
    return values


def _checkpointed(function: Callable[..., Any], modules: Sequence[nn.Module], *arguments: Any) -> Any:
    if not torch.is_grad_enabled():
        return function(*arguments)
    counting = [each for module in modules for each in module.modules() if isinstance(each, _BatchNorm)]
    if not counting:
        return checkpoint(function, *arguments, use_reentrant=False)
    return checkpoint(
        function, *arguments, use_reentrant=False, context_fn=lambda: (nullcontext(), _uncounted(counting))
    )


@contextmanager
def _uncounted(counting: Sequence[_BatchNorm]) -> Iterator[None]:
    """Keep running statistics as the first forward left them."""
    before = [(each.momentum, _copy(each.num_batches_tracked)) for each in counting]
    for each in counting:
        each.momentum = 0.0
    try:
        yield
    finally:
        for each, (momentum, batches) in zip(counting, before, strict=True):
            each.momentum = momentum
            if batches is not None and each.num_batches_tracked is not None:
                each.num_batches_tracked.copy_(batches)


def _copy(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()
