"""Objectives and scores, as sums over samples, so that shares of any size add up exactly."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer.data.sets import IGNORED, Shape

#: Weight of a second output from inside the network, as in torchvision's reference training.
AUXILIARY = 0.5


@dataclass(frozen=True, kw_only=True)
class TrainingObjective:
    """A loss, and scores for the evaluation. Outputs are whatever the model answers."""

    #: Outputs and targets of a batch -> loss summed over its samples, without a dimension.
    loss: Callable[[Any, Tensor], Tensor]
    #: Outputs and targets of a batch -> float64 vector of sums, on their device.
    measure: Callable[[Any, Tensor], Tensor]
    #: Those vectors added up over all batches of all ranks, and the number of samples -> scores by name.
    conclude: Callable[[list[float], int], dict[str, float]]
    #: Outputs, n -> outputs of the first n samples.
    trim: Callable[[Any, int], Any]
    #: Outputs and targets of a batch -> how many of its samples are right; None where a sample is not right or wrong.
    correct: Callable[[Any, Tensor], Tensor] | None = None


def objective_for(shape: Shape) -> TrainingObjective:
    """Return the objective that models for this shape of data are trained on."""
    return OBJECTIVES[shape.kind](shape)


def trimmed(outputs: Any, samples: int) -> Any:
    """The first samples of a tensor, or of every tensor in a mapping."""
    if isinstance(outputs, Mapping):
        return {name: trimmed(output, samples) for name, output in outputs.items()}
    # A slice costs a step of the backward pass, also one of everything.
    return outputs if len(outputs) == samples else outputs[:samples]


def classification(shape: Shape) -> TrainingObjective:  # noqa: ARG001 (all objectives are made alike)
    """Cross entropy and accuracy of outputs (N, classes) for targets (N)."""
    return CLASSIFICATION


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    # In full precision: autocast leaves outputs of 16 bits, whose sums keep two or three digits, and fp16 overflows.
    return functional.cross_entropy(outputs.float(), targets, reduction="sum")


def _correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(dim=1) == targets).sum()


def _loss_and_correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([cross_entropy(outputs, targets).double(), _correct(outputs, targets).double()])


def _loss_and_accuracy(sums: list[float], samples: int) -> dict[str, float]:
    loss, correct = sums
    return {"loss": loss / samples, "accuracy": correct / samples}


CLASSIFICATION = TrainingObjective(
    loss=cross_entropy, measure=_loss_and_correct, conclude=_loss_and_accuracy, trim=trimmed, correct=_correct
)


def segmentation(shape: Shape) -> TrainingObjective:
    """Cross entropy, pixel accuracy and mean IoU of outputs (N, classes, height, width) for (N, height, width).

    Outputs may be a mapping with ``out``, as torchvision's models answer. The loss of a sample is the mean over its
    pixels that are not `IGNORED`, and 0 if there are none. The IoU (Everingham et al. 2010) is averaged over the
    classes that occur in targets or predictions.
    """

    def measure(outputs: Any, targets: Tensor) -> Tensor:
        scores = _main(outputs)
        confusion = _confusion(scores.argmax(dim=1), targets, shape.classes)
        return torch.cat([pixel_loss(scores, targets).double().view(1), confusion.double()])

    return TrainingObjective(loss=_segmentation_loss, measure=measure, conclude=_overlaps, trim=trimmed)


def pixel_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Each sample's mean over its valid pixels, summed over samples."""
    losses = functional.cross_entropy(scores.float(), targets, ignore_index=IGNORED, reduction="none")
    valid = (targets != IGNORED).sum(dim=(1, 2)).clamp(min=1)
    return (losses.sum(dim=(1, 2)) / valid).sum()


def _segmentation_loss(outputs: Any, targets: Tensor) -> Tensor:
    loss = pixel_loss(_main(outputs), targets)
    if isinstance(outputs, Mapping) and "aux" in outputs:
        return loss + AUXILIARY * pixel_loss(outputs["aux"], targets)
    return loss


def _main(outputs: Any) -> Tensor:
    scores: Tensor = outputs["out"] if isinstance(outputs, Mapping) else outputs
    return scores


def _confusion(predicted: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Counts of pixels by target (rows) and prediction (columns), flat."""
    valid = targets != IGNORED
    return torch.bincount(targets[valid] * classes + predicted[valid], minlength=classes**2)


def _overlaps(sums: list[float], samples: int) -> dict[str, float]:
    confusion = torch.tensor(sums[1:], dtype=torch.float64)
    confusion = confusion.view(math.isqrt(len(confusion)), -1)
    hits = confusion.diagonal()
    unions = confusion.sum(dim=0) + confusion.sum(dim=1) - hits
    occurring = unions > 0
    return {
        "loss": sums[0] / samples,
        "pixel_accuracy": float(hits.sum() / confusion.sum().clamp(min=1)),
        "mean_iou": float((hits[occurring] / unions[occurring]).mean()) if occurring.any() else 0.0,
    }


OBJECTIVES: dict[str, Callable[[Shape], TrainingObjective]] = {
    "classification": classification,
    "segmentation": segmentation,
}
