"""What is minimised, and what is measured. Sums over samples, so that shares of any size add up exactly."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

#: From outputs and targets of a batch to a sum over its samples.
Summed = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss, and scores for the evaluation."""

    loss: Summed
    scores: dict[str, Summed]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="sum")


def correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(dim=1) == targets).sum()


CLASSIFICATION = Objective(loss=cross_entropy, scores={"loss": cross_entropy, "accuracy": correct})
