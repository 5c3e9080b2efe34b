"""Loading: batches of a sampler on the device."""

import random
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from torchyard.recipe import Recipe
from trainer.data.signals import shield_from_sigterm
from trainer.exceptions import RecipeError
from trainer.randomness import derive

#: Inputs (N, …) and targets (N, …) on the device.
Pair = tuple[Tensor, Tensor]


@dataclass(kw_only=True, slots=True)
class Batch:
    """Samples that one process computes in one forward pass."""

    #: (N, …); None on a process that loads nothing.
    inputs: Tensor | None
    targets: Tensor | None
    #: Samples that count; those behind are padding.
    count: int
    #: Samples of all shares in the whole step of the optimizer.
    step_size: int
    #: Whether the optimizer steps after it.
    last: bool


def load(
    dataset: Dataset[Any], sampler: Sampler[list[int]], recipe: Recipe, device: torch.device, stream: tuple[object, ...]
) -> Iterator[Pair]:
    """Yield the sampler's batches on the device; with loader processes each is copied during the step before.

    Chance in loader processes is drawn from `stream` (names for `derive`) and the batch's first sample: it does not
    touch the rank's own, and a resumed run sees the same, whichever process loads the batch.
    """
    seed = derive(recipe.seed, "loader", *stream)
    loader: DataLoader[Pair] = DataLoader(
        SeededDataset(dataset, seed) if recipe.num_workers else dataset,
        batch_sampler=sampler,
        num_workers=recipe.num_workers,
        collate_fn=_batched,
        pin_memory=device.type == "cuda",
        worker_init_fn=shield_from_sigterm if recipe.num_workers else None,
        generator=torch.Generator().manual_seed(seed),
    )
    pairs: Iterator[Pair] = iter(loader)
    if device.type == "cpu" and not recipe.channels_last:
        return pairs  # they are where and as they should be
    # Without loader processes a pair must not be drawn before its turn: that may take from the rank's random stream.
    return copied(pairs, device, ahead=int(recipe.num_workers > 0), channels_last=recipe.channels_last)


class SeededDataset(Dataset[Any]):
    """Another set's samples in a loader process, whose random streams begin anew with each batch."""

    def __init__(self, source: Any, seed: int) -> None:
        self._source = source
        self._seed = seed

    def __getitems__(self, indices: list[int]) -> Any:
        seed = derive(self._seed, indices[0])
        random.seed(seed)
        numpy.random.seed(seed % 2**32)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would note it for GPUs too, each time
        if hasattr(self._source, "__getitems__"):
            return self._source.__getitems__(indices)
        return [self._source[index] for index in indices]


def copied(pairs: Iterator[Pair], device: torch.device, *, ahead: int, channels_last: bool = False) -> Iterator[Pair]:
    """Yield each pair on the device, its copy begun `ahead` pairs early, on a stream of its own if there are any."""
    side = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
    started: deque[Pair] = deque()
    for pair in pairs:
        started.append(_copy(pair, device, side, channels_last))
        if len(started) > ahead:
            yield _handed_over(started.popleft(), side)
    while started:
        yield _handed_over(started.popleft(), side)


def _copy(pair: Pair, device: torch.device, side: Any, channels_last: bool) -> Pair:
    layout = torch.channels_last if channels_last and pair[0].dim() == 4 else torch.preserve_format
    with nullcontext() if side is None else torch.cuda.stream(side):
        return (
            pair[0].to(device, non_blocking=True, memory_format=layout),
            pair[1].to(device, non_blocking=True),
        )


def _handed_over(pair: Pair, side: Any) -> Pair:
    """Make the computing stream wait for the copy, and keep the memory until it has computed."""
    if side is not None:
        current = torch.cuda.current_stream(side.device)
        current.wait_stream(side)
        for tensor in pair:
            tensor.record_stream(current)
    return pair


def padded(pair: Pair, size: int) -> Pair:
    """Repeat the pair's last sample up to `size` samples, for ranks that must pass equal batches."""
    missing = size - len(pair[0])
    if missing <= 0:
        return pair
    inputs, targets = pair
    repeat = torch.full((missing,), len(inputs) - 1, device=inputs.device)
    return torch.cat([inputs, inputs[repeat]]), torch.cat([targets, targets[repeat]])


def _batched(fetched: Any) -> Any:
    """Make a batch of a list of samples; `TensorData` answers one as it is, where a set of torch's own does not.

    Raises RecipeError where it is no pair of tensors.
    """
    batch = default_collate(fetched) if isinstance(fetched, list) else fetched
    kinds = [type(each).__name__ for each in batch] if isinstance(batch, (list, tuple)) else [type(batch).__name__]
    if len(kinds) != 2 or not all(isinstance(each, Tensor) for each in batch):
        raise RecipeError(
            f"the data answer {' and '.join(kinds)} for a batch: let a sample be input and target, tensors or numbers"
        )
    return batch
