"""Samples changed when they are taken, by chance that resumes exactly."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from trainer.randomness import derive

#: From what a set holds, an image and a target, to tensors of one shape.
Change = Callable[[Any, Any], tuple[Tensor, Any]]


class TransformedDataset(Dataset[tuple[Tensor, Any]]):
    """Another set's samples, changed one by one."""

    def __init__(self, source: Any, change: Change) -> None:
        self._source = source
        self._change = change

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        return self._change(*self._source[index])


class AugmentedDataset(TransformedDataset):
    """Samples changed at random: what happens to a sample follows from seed, epoch and index alone.

    So it does not matter which process loads it, what was loaded before, or where a run was stopped and resumed.
    """

    def __init__(self, source: Any, change: Change) -> None:
        super().__init__(source, change)
        self._moment = (0, 0)

    def begin(self, seed: int, epoch: int) -> None:
        """Set the run's seed, and the epoch that the next samples are drawn for."""
        self._moment = (seed, epoch)

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        seed, epoch = self._moment
        with _chance(derive(seed, "augmentation", epoch, index)):
            return super().__getitem__(index)


@contextmanager
def _chance(seed: int) -> Iterator[None]:
    """Seed torch's CPU stream inside; afterwards the process's own goes on where it was."""
    generator = torch.default_generator  # torch.manual_seed would reach the GPU's streams too
    own = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(own)
