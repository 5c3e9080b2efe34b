"""Blocks: modules of a model that are called one after the other, and gathered, compiled or recomputed as one."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from torch import nn

Named = tuple[str, nn.Module]


def blocks(model: nn.Module) -> list[Named]:
    """Return modules with parameters, none inside another, by name: the layers of containers, whole where composed.

    The layers of a `Sequential` are blocks; so is a residual block, because only its own forward knows the order
    inside. Parameters that several blocks share, or one and the model, stay with the model.
    """
    found = list(_below("", model))
    within = {module for _, block in found for module in block.modules()}
    others = [set(module.parameters(recurse=False)) for module in model.modules() if module not in within]
    users = Counter(map(id, chain(*(set(block.parameters()) for _, block in found), *others)))
    return [each for each in found if all(users[id(parameter)] == 1 for parameter in each[1].parameters())]


def chained(module: nn.Module) -> tuple[nn.Module, ...] | None:
    """Return the modules that it calls one after the other, where it does nothing else; else None."""
    if isinstance(module, nn.Sequential):
        return tuple(module) if type(module).forward is nn.Sequential.forward else None
    return getattr(module, "in_order", None)


def _below(name: str, module: nn.Module) -> Iterator[Named]:
    for child_name, child in module.named_children():
        path = f"{name}.{child_name}" if name else child_name
        if chained(child) is not None or isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            yield from _below(path, child)
        elif next(child.parameters(), None) is not None:
            yield path, child
