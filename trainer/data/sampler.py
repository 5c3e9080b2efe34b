"""Samplers that count what was consumed, so that a run resumes inside an epoch exactly."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch.utils.data import Sampler

from trainer.exceptions import RecipeError
from trainer.randomness import derive


@dataclass(frozen=True, kw_only=True)
class BatchShares:
    """Number of equal shares that each pass is dealt to, and the index of this process's share."""

    index: int = 0
    count: int = 1


class AccumulationPass(NamedTuple):
    """One forward and backward pass of all shares together."""

    #: Where it begins in the epoch's order, and how many samples it takes.
    start: int
    size: int
    #: Samples of the whole optimizer step that it belongs to.
    step_size: int
    #: Whether the optimizer steps after it.
    last: bool


class TrainSampler(Sampler[list[int]]):
    """Batches of one share, in an order that is drawn anew for each epoch.

    A forward pass takes `size` samples of the epoch's order, share s those at s, s + count, …; `accumulate` passes
    make a step of the optimizer. The epoch's last pass takes what is left, in portions that differ by at most one;
    fewer samples than shares are left out of that epoch, with `drop_last` fewer than a whole pass. `consumed` counts
    the samples that all shares have trained on in this epoch. The training loop advances it, because loader processes
    read ahead. It does not depend on the number of shares, so another number of them can go on from it without loss or
    double.
    """

    def __init__(
        self, *, samples: int, size: int, shares: BatchShares, seed: int, accumulate: int = 1, drop_last: bool = False
    ) -> None:
        if drop_last and samples < size:
            raise RecipeError(f"drop_last leaves none of {samples} samples for passes of {size}: leave it out")
        if samples < shares.count:
            raise RecipeError(f"{samples} training samples are fewer than {shares.count} ranks: use fewer ranks")
        if size < shares.count:
            raise RecipeError(f"the batch of {size} samples is smaller than the {shares.count} shares it is dealt to")
        self._samples = samples
        self._size = size
        self._shares = shares
        self._accumulate = accumulate
        self._seed = seed
        self._least = size if drop_last else shares.count
        self.epoch = 0
        self.consumed = 0
        #: An epoch of other samples, or in another order, was under way in the checkpoint: it begins anew.
        self.begun_anew = False

    def set_epoch(self, epoch: int, consumed: int = 0) -> None:
        """Go to a place in the training: the next iteration starts there."""
        self.epoch = epoch
        self.consumed = consumed

    def at(self, epoch: int) -> Self:
        """Return a copy at the beginning of an epoch, which moves by itself."""
        other = copy.copy(self)
        other.set_epoch(epoch)
        return other

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "consumed": self.consumed, **self._data}

    @property
    def _data(self) -> dict[str, int]:
        """Figures that the order of an epoch's samples follows from."""
        return {"samples": self._samples, "seed": self._seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Earlier checkpoints do not tell.
        same = all(state.get(name, value) == value for name, value in self._data.items())
        self.begun_anew = not same and state["consumed"] > 0
        self.set_epoch(int(state["epoch"]), int(state["consumed"]) if same else 0)

    def advance(self, step_size: int) -> None:
        """Count one step of the optimizer, on so many samples, as done."""
        self.consumed += step_size

    @property
    def effective_batch(self) -> int:
        """Samples of a whole step of the optimizer."""
        return self._size * self._accumulate

    @property
    def progress(self) -> float:
        """Epochs done, with the fraction of this one."""
        return self.epoch + self.consumed / self._samples

    def steps_left(self) -> int:
        """Steps of the optimizer left in this epoch."""
        return self._steps(self._samples - self.consumed)

    def steps_in_epoch(self) -> int:
        """Steps of a whole epoch."""
        return self._steps(self._samples)

    def __len__(self) -> int:
        """Passes left in this epoch."""
        return self._passes(self._samples - self.consumed)

    def plan(self) -> Iterator[AccumulationPass]:
        """The passes from `consumed` to the end of the epoch, in step with the batches of `__iter__`."""
        cursor = self.consumed
        while group := self._group(cursor):
            for number, size in enumerate(group, start=1):
                yield AccumulationPass(start=cursor, size=size, step_size=sum(group), last=number == len(group))
                cursor += size

    def __iter__(self) -> Iterator[list[int]]:
        """Index lists of this share from `consumed` to the end of the epoch."""
        order = self._order()
        for micro in self.plan():
            yield order[micro.start + self._shares.index : micro.start + micro.size : self._shares.count]

    def _passes(self, left: int) -> int:
        full, rest = divmod(left, self._size)
        return full + (rest >= self._least)

    def _steps(self, left: int) -> int:
        return math.ceil(self._passes(left) / self._accumulate)

    def _group(self, cursor: int) -> list[int]:
        """Sizes of the passes that make the next step."""
        left = self._samples - cursor
        passes = min(self._accumulate, self._passes(left))
        return [min(self._size, left - number * self._size) for number in range(passes)]

    def _order(self) -> list[int]:
        chance = torch.Generator().manual_seed(derive(self._seed, "order", self.epoch))
        return list(torch.randperm(self._samples, generator=chance).tolist())


class EvaluationSampler(Sampler[list[int]]):
    """Batches of one share, `index::count`: every sample exactly once among all shares.

    Shares may differ by one sample, so they may have one batch more or less: `common` is the number that all have.
    With `equal` those that are short get batches of one sample that does not count.
    """

    def __init__(self, *, samples: int, batch_size: int, shares: BatchShares, equal: bool = False) -> None:
        self._share = range(shares.index, samples, shares.count)
        self._batch_size = batch_size
        self.common = math.ceil(samples // shares.count / batch_size)
        most = math.ceil(math.ceil(samples / shares.count) / batch_size)
        self._fillers = most - math.ceil(len(self._share) / batch_size) if equal else 0

    def counts(self) -> Iterator[int]:
        """Number of samples of each batch that count, in step with the batches."""
        for start in range(0, len(self._share), self._batch_size):
            yield min(self._batch_size, len(self._share) - start)
        yield from [0] * self._fillers

    def __len__(self) -> int:
        return math.ceil(len(self._share) / self._batch_size) + self._fillers

    def __iter__(self) -> Iterator[list[int]]:
        for start in range(0, len(self._share), self._batch_size):
            yield list(self._share[start : start + self._batch_size])
        yield from [[0]] * self._fillers
