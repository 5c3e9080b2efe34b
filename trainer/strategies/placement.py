"""Placement of layers: consecutive ones, balanced by the bytes of their parameters or by time.

The two are far apart in convolutional networks: the first layers compute longest, and the last ones have most of the
parameters. Time is estimated by the operations of a forward pass; backward takes about twice as many of each layer.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import accumulate, chain, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from trainer.exceptions import RecipeError
from trainer.models.layers import as_layers

#: Layers in order, each with the prefix of its names in the whole model's state dict.
Layers = Sequence[tuple[str, nn.Module]]


#: A prefix cut into stages: its largest one, the sum of squares, and the cuts, negative to prefer late ones.
_Way = tuple[int, int, tuple[int, ...]]


def balanced(sizes: Sequence[int], stages: int) -> list[range]:
    """Return consecutive ranges of indices, none empty, whose largest sum of sizes is as small as can be.

    Among those it prefers even ones (by the sum of squares), so that no stage is left without a size for nothing; then
    late cuts: an activation function stays with its layer, and what crosses to the next stage is behind the pooling.
    Raises ValueError for more stages than sizes. Dynamic programming over prefixes: O(stages x len(sizes)^2).
    """
    if not 0 < stages <= len(sizes):
        raise ValueError(f"{len(sizes)} sizes do not make {stages} stages")
    sums = [0, *accumulate(sizes)]
    best: list[_Way | None] = [(0, 0, (0,)), *[None] * len(sizes)]
    for _ in range(stages):
        best = [_best_end(best, sums, end) for end in range(len(sums))]
    found = best[-1]
    assert found is not None
    return [range(-start, -end) for start, end in pairwise(found[2])]


def _best_end(best: Sequence[_Way | None], sums: Sequence[int], end: int) -> _Way | None:
    """Return the best way to end one more stage at `end`."""
    ways = []
    for start, before in enumerate(best[:end]):
        if before is not None:
            size = sums[end] - sums[start]
            ways.append((max(before[0], size), before[1] + size**2, (*before[2], -end)))
    return min(ways, default=None)


def parameter_bytes(module: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())


def place(
    model: nn.Module, stages: int, *, what: str, balance: str = "bytes", sample: Sequence[int] = ()
) -> list[Layers]:
    """Cut the layers into so many stages, in order; raises RecipeError, which names them as `what`, for too many.

    `sample` is the shape of one sample, which a balance by time needs.
    """
    layers = as_layers(model)
    if len(layers) < stages:
        raise RecipeError(
            f"the model has {len(layers)} layers, too few for {stages} {what}: take fewer devices or a deeper model"
        )
    sizes = [parameter_bytes(layer) for _, layer in layers] if balance == "bytes" else _times(layers, sample)
    placed: list[Layers] = [[layers[i] for i in each] for each in balanced(sizes, stages)]
    _refuse_shared(placed, what)
    return placed


def _refuse_shared(placed: Sequence[Layers], what: str) -> None:
    """Raise RecipeError for a parameter of layers in two stages: each would train a copy of its own."""
    seen: dict[nn.Parameter, tuple[int, str]] = {}
    for number, layers in enumerate(placed):
        for prefix, layer in layers:
            for name, parameter in layer.named_parameters(prefix):
                stage, first = seen.setdefault(parameter, (number, name))
                if stage != number:
                    raise RecipeError(
                        f"{first} and {name} are one parameter, but would lie on different {what}: give each layer its "
                        "own, or take strategy: ddp or fsdp"
                    )


def _times(layers: Layers, sample: Sequence[int]) -> list[int]:
    found = operations(layers, sample)
    if found is None:
        raise RecipeError(
            f"strategy.balance time: the model does not take floats of shape {list(sample)}, so its operations cannot "
            "be counted: take balance: bytes"
        )
    return found


def operations(layers: Layers, sample: Sequence[int]) -> list[int] | None:
    """Count floating point operations of each layer for one sample, forward; nothing is computed.

    None where a layer does not take what the one before answers to a sample of floats.
    """
    found = []
    try:
        with FakeTensorMode(), torch.no_grad():
            values = torch.empty(1, *sample)
            for _, layer in layers:
                with FlopCounterMode(display=False) as counter:
                    values = _imagined(layer, values)
                found.append(counter.get_total_flops())
    except (RuntimeError, TypeError, ValueError):
        return None
    return found


def operations_of(stages: Sequence[Layers], sample: Sequence[int]) -> list[int | None]:
    """Count the operations of each stage, for the record; None for a stage in which they are not known."""
    found = operations([layer for layers in stages for layer in layers], sample)
    if found is None:
        return [None] * len(stages)
    ends = [0, *accumulate(len(layers) for layers in stages)]
    return [sum(found[start:end]) for start, end in pairwise(ends)]


class StageModule(nn.Module):
    """A stage: consecutive layers, under the names that they have in the whole model."""

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        for name, layer in layers:
            _hang(self, name, layer)
        self.names = [name for name, _ in layers]
        # A tuple, which torch does not look into: the layers are registered already.
        self.in_order = tuple(layer for _, layer in layers)

    def forward(self, values: Any) -> Any:
        for layer in self.in_order:
            values = layer(values)
        return values


def _hang(root: nn.Module, name: str, layer: nn.Module) -> None:
    *path, last = name.split(".")
    for step in path:
        if step not in dict(root.named_children()):
            root.add_module(step, nn.Module())
        root = root.get_submodule(step)
    root.add_module(last, layer)


def activations(
    stages: Sequence[Layers], shape: Sequence[int], device: torch.device, autocast: AbstractContextManager[Any]
) -> list[Tensor]:
    """Return meta tensors like what each stage answers to inputs of this shape; nothing is computed.

    Raises RecipeError for a layer that does not go from one tensor to another.
    """
    found = []
    with FakeTensorMode(), torch.no_grad(), autocast:
        values = torch.empty(*shape, device=device)
        for layers in stages:
            for name, layer in layers:
                values = _passed(name, layer, values)
            found.append((values.shape, values.dtype))
    return [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in found]


def _passed(name: str, layer: nn.Module, values: Tensor) -> Tensor:
    try:
        answer: Any = _imagined(layer, values)
    except (RuntimeError, TypeError, ValueError) as error:
        taken = f"{values.dtype} of shape {list(values.shape)}".removeprefix("torch.")
        raise RecipeError(
            f"the model's layer {name} does not take what comes to it, {taken}: {error}: a pipeline passes one tensor "
            "from layer to layer, of floats at first: take strategy: ddp or fsdp"
        ) from error
    if not isinstance(answer, Tensor):
        raise RecipeError(
            f"the model's layer {name} answers {type(answer).__name__}, where a pipeline passes one tensor on: take "
            "strategy: ddp or fsdp"
        )
    return answer


def _imagined(layer: nn.Module, values: Tensor) -> Tensor:
    """Return the layer's output, parameters without memory; in evaluation mode, which keeps batch statistics."""
    state = {
        name: torch.empty(value.shape, dtype=value.dtype, device=values.device)
        for name, value in chain(layer.named_parameters(), layer.named_buffers())
    }
    training = layer.training
    layer.eval()
    try:
        answer: Tensor = torch.func.functional_call(layer, state, (values,))
    finally:
        layer.train(training)
    return answer
