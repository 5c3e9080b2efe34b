"""Splitting of linear layers over the ranks of a tensor group (Shoeybi et al. 2019, Megatron-LM).

Of two consecutive linear layers the first is split by its outputs and the second by its inputs: the activations between
them stay in pieces, and one sum over the group brings them together. A linear layer that has no partner is split by its
outputs, which are then gathered. Everything else, convolutions too, is computed whole by each rank of the group.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from torch.nn import functional

from trainer.models.blocks import Named, chained

TensorSplit = Literal["columns", "rows", "gathered columns"]

#: Modules that treat every element alike, so that a piece of the activations is enough for them.
_ELEMENTWISE = (
    nn.Identity,
    nn.Dropout,
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Hardswish,
    nn.Tanh,
    nn.Sigmoid,
)

#: PyTorch's own blocks use the weights of their layers directly.
_COMPOSED = ("torch.nn.modules.transformer", "torch.nn.modules.activation")


def plan(chain: Sequence[Named], ranks: int, shared: Collection[str] = ()) -> dict[str, TensorSplit]:
    """Plan how linear layers among modules called in this order are split over so many ranks, by name.

    The width between a pair must be a multiple of the ranks; gathered outputs need not be, but at least one for each.
    Layers whose weights are `shared` stay whole.
    """
    found: dict[str, TensorSplit] = {}
    linear = [index for index, (name, module) in enumerate(chain) if type(module) is nn.Linear and name not in shared]
    for index, following in zip_longest(linear, linear[1:]):
        name, module = chain[index]
        assert isinstance(module, nn.Linear)
        if name in found:
            continue
        if following is not None and _is_pair(chain[index : following + 1], ranks):
            found[name], found[chain[following][0]] = "columns", "rows"
        elif module.out_features >= ranks:
            found[name] = "gathered columns"
    return found


def _is_pair(chain: Sequence[Named], ranks: int) -> bool:
    (_, first), *between, (_, _) = chain
    assert isinstance(first, nn.Linear)
    return first.out_features % ranks == 0 and all(type(module) in _ELEMENTWISE for _, module in between)


def plan_of(model: nn.Module, ranks: int) -> dict[str, TensorSplit]:
    """Plan how a model's linear layers are split."""
    modules = dict(model.named_modules(remove_duplicate=False))
    # Not linear ones alone: an embedding's weights may be the last layer's too, and a layer may be there twice.
    users = Counter(id(value) for module in modules.values() for value in _own(module))
    shared = {name for name, module in modules.items() if any(users[id(each)] > 1 for each in _own(module))}
    found: dict[str, TensorSplit] = {}
    for chain in _chains(model):
        found |= plan(chain, ranks, shared)
    return found


def _own(module: nn.Module) -> list[nn.Parameter]:
    return list(module.parameters(recurse=False))


def _chains(model: nn.Module) -> Iterator[list[Named]]:
    """Modules that are called in order: the children of a `Sequential` together, every other layer alone."""
    for name, module in model.named_modules():
        children = [(f"{name}.{child}" if name else child, each) for child, each in module.named_children()]
        if chained(module) is not None:
            yield children
        elif not type(module).__module__.startswith(_COMPOSED):
            yield from ([each] for each in children)


def split(model: nn.Module, mesh: DeviceMesh, planned: Mapping[str, TensorSplit]) -> None:
    """Make the planned layers' parameters DTensors on the mesh, and what lies within a pair fit for pieces."""
    for name in _dropouts(model, planned):
        dropout = model.get_submodule(name)
        assert isinstance(dropout, nn.Dropout)
        model.set_submodule(name, DropoutOfPiece(dropout.p, mesh.get_local_rank(), mesh.size()))
    for module in model.modules():
        # A split layer may answer a view, and what is done to it in place is lost on its gradient's way.
        if getattr(module, "inplace", False):
            setattr(module, "inplace", False)  # noqa: B010 (not every module has it)
    parallelize_module(model, mesh, {name: _style(each) for name, each in planned.items()})


def _style(each: TensorSplit) -> ParallelStyle:
    if each == "rows":
        return RowwiseParallel()
    return ColwiseParallel() if each == "columns" else ColwiseParallel(output_layouts=Replicate())


def _dropouts(model: nn.Module, planned: Mapping[str, TensorSplit]) -> list[str]:
    """Return the names of dropout layers within a pair."""
    found = []
    for chain in _chains(model):
        within = False
        for name, module in chain:
            within = planned[name] == "columns" if name in planned else within
            if within and isinstance(module, nn.Dropout):
                found.append(name)
    return found


class DropoutOfPiece(nn.Module):
    """Dropout of this rank's piece of the last dimension, as it would be of the whole.

    All ranks of a group draw alike: each draws for the whole width, so that pieces do not all drop the same elements
    and the result is that of a single process.
    """

    def __init__(self, p: float, rank: int, ranks: int) -> None:
        super().__init__()
        self.p = p
        self.rank = rank
        self.ranks = ranks

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or not self.p:
            return inputs
        width = inputs.shape[-1]
        factors = functional.dropout(inputs.new_ones(*inputs.shape[:-1], self.ranks * width), self.p)
        return inputs * factors.narrow(-1, self.rank * width, width)
