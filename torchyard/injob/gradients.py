"""Gradients that a loop accumulates over several reports: each rank's own, and kept while no step has used them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Gradients:
    """The gradients of what optimizers train. All that have stepped since the report before have nothing to keep."""

    def __init__(self, optimizers: Iterable[Any]) -> None:
        self._optimizers = [each for each in optimizers if hasattr(each, "param_groups")]
        #: Of each optimizer: a parameter with a gradient, and its version, at the last report and at the one before.
        self._last: list[Any] = [None] * len(self._optimizers)
        self._before: list[Any] = [None] * len(self._optimizers)

    def reported(self) -> None:
        """The loop reports: what has changed since it last did has been stepped."""
        self._before, self._last = self._last, [_version(optimizer) for optimizer in self._optimizers]

    def state(self) -> list[list[Any]]:
        """The gradients of each optimizer that steps less often than the loop reports; empty for the others."""
        return [
            [_local(parameter.grad) for parameter in _parameters(optimizer)] if self._accumulates(number) else []
            for number, optimizer in enumerate(self._optimizers)
        ]

    def load(self, saved: Sequence[Sequence[Any]]) -> None:
        """Put back what `state` answered, on as many ranks."""
        for optimizer, gradients in zip(self._optimizers, saved):  # noqa: B905 (strict= came with 3.10)
            for parameter, gradient in zip(_parameters(optimizer), gradients):  # noqa: B905
                parameter.grad = None if gradient is None else _like(parameter, gradient)

    def _accumulates(self, number: int) -> bool:
        now = _version(self._optimizers[number])
        return now is not None and now == self._last[number] and self._before[number] in (None, now)


def _parameters(optimizer: Any) -> Iterator[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _version(optimizer: Any) -> tuple[int, int] | None:
    """The first parameter with a gradient, by its id, and how often it was written to; None without any."""
    first = next((each for each in _parameters(optimizer) if each.grad is not None), None)
    return None if first is None else (id(first), _local(first)._version)


def _local(tensor: Any) -> Any:
    return tensor._local_tensor if hasattr(tensor, "device_mesh") else tensor


def _like(parameter: Any, gradient: Any) -> Any:
    if not hasattr(parameter, "device_mesh"):
        return gradient.to(parameter.device).clone()
    local = gradient.to(_local(parameter).device).clone()
    return type(parameter.data)(local, parameter._spec, requires_grad=False)
