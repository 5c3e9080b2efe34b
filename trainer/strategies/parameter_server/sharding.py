"""Shards of the model, one for each server, and how they lie in a message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.exceptions import RecipeError


class FlatLayout:
    """Tensors of any types and shapes as places in one flat buffer of bytes, in order."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._places: list[tuple[slice, torch.dtype, torch.Size]] = []
        self.size = 0
        for tensor in tensors:
            step = tensor.element_size()
            start = -(-self.size // step) * step
            self.size = start + tensor.nbytes
            self._places.append((slice(start, self.size), tensor.dtype, tensor.shape))

    def buffer(self, device: torch.device) -> Tensor:
        """Return a new buffer (bytes), all zero."""
        return torch.zeros(self.size, dtype=torch.uint8, device=device)

    def views(self, buffer: Tensor) -> list[Tensor]:
        """Return the tensors in a buffer, without a copy."""
        return [buffer[place].view(dtype).view(shape) for place, dtype, shape in self._places]


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Parameters and buffers that one server holds, in the model's order."""

    parameters: dict[str, nn.Parameter]
    buffers: dict[str, Tensor]

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in the order that they follow each other in a message."""
        return [*self.parameters.values(), *self.buffers.values()]


def shards(model: nn.Module, servers: int) -> list[Shard]:
    """Spread the trained parameters over servers, all buffers at the first; raises RecipeError if one has none."""
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if len(trained) < servers:
        raise RecipeError(f"strategy.servers ({servers}) is more than the model has parameters: take {len(trained)}")
    saved = model.state_dict()
    buffers = {name: value for name, value in model.named_buffers() if name in saved}
    names = list(trained)
    return [
        Shard(
            parameters={names[index]: trained[names[index]] for index in indices},
            buffers={} if server else buffers,
        )
        for server, indices in enumerate(assign([value.nbytes for value in trained.values()], servers))
    ]


def assign(sizes: Sequence[int], servers: int) -> list[list[int]]:
    """Assign indices to servers: the largest first, each to the server that has the least so far."""
    held: list[list[int]] = [[] for _ in range(servers)]
    load = [0] * servers
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        least = min(range(servers), key=lambda server: (load[server], len(held[server])))
        held[least].append(index)
        load[least] += sizes[index]
    return [sorted(indices) for indices in held]
