"""An exponential moving average of the weights (Polyak and Juditsky 1992; `torch.optim.swa_utils`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Average:
    """A second copy of parameters, which follows them slowly; of a sharded parameter, of this rank's shard."""

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        self._live = [_local(parameter) for parameter in parameters]
        self._decay = decay
        self._average = [parameter.clone() for parameter in self._live]

    @torch.no_grad()
    def update(self) -> None:
        """After each step of the optimizer."""
        torch._foreach_lerp_(self._average, self._live, 1 - self._decay)

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        """The parameters hold the average inside, and the average holds theirs."""
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
        return {"average": self._average}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for average, saved in zip(self._average, state["average"], strict=True):
            average.copy_(saved)


def _local(parameter: Tensor) -> Tensor:
    local: Tensor = parameter.detach()
    return local.to_local() if hasattr(local, "to_local") else local
