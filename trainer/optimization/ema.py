"""An exponential moving average of the weights (Polyak and Juditsky 1992; `torch.optim.swa_utils.AveragedModel`)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from trainer.distributed.collectives import local

#: Before the name of a parameter: its average.
PREFIX = "ema."


class MovingAverage:
    """A second copy of parameters, which follows them slowly; of a sharded parameter, of this rank's shard.

    It begins with the initial weights. Buffers are not averaged: an evaluation sees those of the model.
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        live = {name: parameter.detach() for module in modules for name, parameter in module.named_parameters()}
        self._decay = decay
        # By name, so that another number of ranks or stages finds its own in a checkpoint.
        self._named = {name: parameter.clone() for name, parameter in live.items()}
        self._live = [local(parameter) for parameter in live.values()]
        self._average = [local(average) for average in self._named.values()]

    @torch.no_grad()
    def update(self) -> None:
        """Follow the parameters after each step of the optimizer."""
        if self._live:  # a stage of a pipeline may have no parameters
            torch._foreach_lerp_(self._average, self._live, 1 - self._decay)

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        """Swap parameters and their averages inside the block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for live, average in zip(self._live, self._average, strict=True):
            kept = live.clone()
            live.copy_(average)
            average.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """The averages by the names of their parameters, behind ``ema.``; the tensors themselves."""
        return {PREFIX + name: average for name, average in self._named.items()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, average in self.state_dict().items():
            average.copy_(state[name])
