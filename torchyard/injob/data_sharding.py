"""Sharding of an epoch's rest to another number of ranks, where torch's own `DistributedSampler` drew its order."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def replicas(loader: Any) -> int | None:
    """Number of ranks that the samples of one order are dealt to; None if each has its own order or an unknown one."""
    distributed = sys.modules.get("torch.utils.data.distributed")
    data = sys.modules["torch.utils.data"]
    # Exactly these: a subclass may deal otherwise.
    if distributed is None or type(loader.sampler) is not distributed.DistributedSampler:
        return None
    return int(loader.sampler.num_replicas) if type(loader.batch_sampler) is data.BatchSampler else None


def batch_size(loader: Any) -> int | None:
    """Samples of a batch, where it is a fixed number."""
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def consumed(loader: Any, state: Mapping[str, Any]) -> int:
    """Samples of the epoch's order that all ranks have taken at a place of `Batches.state`."""
    samples = len(loader.sampler.dataset)
    taken = state["taken"] * state["batch_size"] * state["replicas"]
    return int(min(samples, state["consumed"] + taken))


def batches_left(loader: Any, start: int) -> int:
    """Number of batches in `rest`."""
    sampler, batches = loader.sampler, loader.batch_sampler
    samples = _share(len(sampler.dataset) - start, sampler.num_replicas, whole=sampler.drop_last)
    return _share(samples, batches.batch_size, whole=batches.drop_last)


def _share(total: int, parts: int, *, whole: bool) -> int:
    return total // parts if whole else -(-total // parts)


def rest(loader: Any, start: int) -> Iterable[list[int]]:
    """Batches of this rank from the order from `start` on, dealt as the sampler deals, with its padding or its tail."""
    sampler = loader.sampler
    whole = copy.copy(sampler)
    whole.num_replicas, whole.rank, whole.drop_last = 1, 0, False
    whole.num_samples = whole.total_size = len(sampler.dataset)
    order = list(whole)[start:]
    count = _share(len(order), sampler.num_replicas, whole=sampler.drop_last) * sampler.num_replicas
    order += (order * sampler.num_replicas)[: max(0, count - len(order))]
    batches = loader.batch_sampler
    mine = order[sampler.rank : count : sampler.num_replicas]
    dealt: Iterable[list[int]] = type(batches)(mine, batches.batch_size, batches.drop_last)
    return dealt
