"""Which samples each rank takes, counted so that a run resumes inside an epoch exactly."""

import math
from collections.abc import Iterator

import torch
from torch.utils.data import Sampler

from trainer.exceptions import RecipeError
from trainer.randomness import derive


class TrainSampler(Sampler[list[int]]):
    """Batches of one rank, in an order that is drawn anew for each epoch.

    One step takes `world * batch_size` samples of the epoch's order, rank r those at r, r + world, …; the last step
    takes what is left, in shares that differ by at most one. `consumed` counts the samples that all ranks have
    trained on in this epoch. The training loop advances it, because loader processes read ahead. It does not depend
    on the number of ranks, so another number of them can go on from it without loss or double.

    Fewer samples than ranks at the end of an epoch are left out of that epoch.
    """

    def __init__(self, *, samples: int, batch_size: int, rank: int, world: int, seed: int) -> None:
        if samples < world:
            raise RecipeError(f"{samples} training samples are fewer than {world} ranks: use fewer ranks")
        self._samples = samples
        self._rank = rank
        self._world = world
        self._step_samples = batch_size * world
        self._seed = seed
        self.epoch = 0
        self.consumed = 0

    def set_epoch(self, epoch: int, consumed: int = 0) -> None:
        """Goes to a place in the training: the next iteration starts there."""
        self.epoch = epoch
        self.consumed = consumed

    def step_size(self) -> int:
        """Samples that all ranks together take in the next step; 0 at the end of the epoch."""
        return self._step_size(self.consumed)

    def advance(self) -> None:
        """Counts one step as done."""
        self.consumed += self.step_size()

    @property
    def progress(self) -> float:
        """Epochs done, with the fraction of this one."""
        return self.epoch + self.consumed / self._samples

    def __len__(self) -> int:
        """Steps left in this epoch."""
        left = self._samples - self.consumed
        full, rest = divmod(left, self._step_samples)
        return full + (rest >= self._world)

    def steps_in_epoch(self) -> int:
        """Steps of a whole epoch."""
        full, rest = divmod(self._samples, self._step_samples)
        return full + (rest >= self._world)

    def __iter__(self) -> Iterator[list[int]]:
        """Index lists of this rank from `consumed` to the end of the epoch."""
        order = self._order()
        cursor = self.consumed
        while size := self._step_size(cursor):
            yield order[cursor + self._rank : cursor + size : self._world]
            cursor += size

    def _step_size(self, cursor: int) -> int:
        size = min(self._step_samples, self._samples - cursor)
        return size if size >= self._world else 0

    def _order(self) -> list[int]:
        chance = torch.Generator().manual_seed(derive(self._seed, "order", self.epoch))
        return list(torch.randperm(self._samples, generator=chance).tolist())


class EvaluationSampler(Sampler[list[int]]):
    """Batches of one rank's share, `rank::world`: every sample exactly once among all ranks, none padded.

    Shares may differ by one sample, so ranks may have one batch more or less: `common` is the number that all have.
    """

    def __init__(self, *, samples: int, batch_size: int, rank: int, world: int) -> None:
        self._share = range(rank, samples, world)
        self._batch_size = batch_size
        self.common = math.ceil(samples // world / batch_size)

    def __len__(self) -> int:
        return math.ceil(len(self._share) / self._batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        for start in range(0, len(self._share), self._batch_size):
            yield list(self._share[start : start + self._batch_size])
