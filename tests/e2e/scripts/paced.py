"""Data that come slowly until a file is there: a training that lasts as long as a test needs, and computes little."""

import time
from pathlib import Path

import torch
from torch import Tensor

from trainer.data import Batch, DataSets, Shape, TensorData

PAUSE_S, LONGEST_S = 0.3, 3.0
#: A pause is such a part of the time since the beginning: a busy machine takes long to do what the test waits for.
LATER = 1 / 20


class Paced(TensorData):
    """Each batch takes `PAUSE_S` before the gate is there, and later more."""

    def __init__(self, samples: Tensor, targets: Tensor, gate: Path) -> None:
        super().__init__(samples, targets)
        self._gate = gate
        self._begun = time.monotonic()

    def __getitems__(self, indices: list[int]) -> Batch:
        if not self._gate.exists():
            time.sleep(min(LONGEST_S, max(PAUSE_S, LATER * (time.monotonic() - self._begun))))
        return super().__getitems__(indices)


def points(count: int, gate: str) -> DataSets:
    """So many points of two classes, for training and for validation; the same in every run."""
    chance = torch.Generator().manual_seed(0)
    samples = torch.randn(2 * count, 8, generator=chance)
    targets = (samples.sum(dim=1) > 0).long()
    return DataSets(
        train=Paced(samples[:count], targets[:count], Path(gate)),
        validation=TensorData(samples[count:], targets[count:]),
        shape=Shape(sample=(8,), classes=2),
    )
