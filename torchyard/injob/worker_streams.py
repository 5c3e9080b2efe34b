"""Random streams in the processes of a loader, seeded for each batch by its place in the training.

Such a process draws for one batch after another, and nobody sees how far it has come: a resumed run could not go on
from there. Seeded by pass and batch, chance is the same in any number of processes, however far these have read ahead.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torchyard.injob import place, random_streams


def seeded(batches: Iterable[Any], rng: Mapping[str, Any], ordinal: tuple[int, int], first: int) -> Iterator[Any]:
    """Yield lists of indices that seed the process which receives them; a batch that is no list is left as it is.

    `rng`: where the streams were when the pass began, as `BatchOrder.capture_rng` tells it. `ordinal`: epoch, and pass
    in it. `first`: number of the first batch in the pass.
    """
    digest = hashlib.sha256(repr((ordinal, place.rank())).encode())
    for state in (rng["random"]["torch"], *rng["generators"]):
        digest.update(bytes(state.tolist()))
    for number, indices in enumerate(batches, start=first):
        if type(indices) is list:
            own = hashlib.sha256(digest.digest() + number.to_bytes(8, "little"))
            yield _Seeded(indices, random_streams.seed_of(own))
        else:
            yield indices


class _Seeded(list[Any]):
    """A batch's indices, and the seed of what is drawn for it; in the process that receives them a plain list."""

    def __init__(self, indices: Iterable[Any], seed: int) -> None:
        super().__init__(indices)
        self.seed = seed

    def __reduce__(self) -> Any:
        return _received, (list(self), self.seed)


def _received(indices: list[Any], seed: int) -> list[Any]:
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        random_streams.seed(seed)
    return indices
