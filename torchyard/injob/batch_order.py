"""Order of a loader's batches in one pass: drawn, or drawn again as it was, without the batches that were taken.

A resumed pass begins where the random streams were when its order was drawn (`LoaderPass.order_rng`), leaves out what
was taken without loading it, and hands on the streams as they were at the checkpoint (`LoaderPass.resume_rng`),
whatever the loader draws meanwhile to read ahead. A loader without indices is read again.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torchyard.injob import data_sharding, random_streams, worker_streams
from torchyard.injob.counting import has_order
from torchyard.injob.passes import LoaderPass
from torchyard.injob.reasons import CheckpointReason

LAZY = "the sampler draws from the global random streams as it goes: give it its own generator"
LAZY_AND_PASSES = "the sampler draws from its generator as it goes, and so do other passes through the loader"
READ_AHEAD = CheckpointReason("reads-ahead")


class BatchOrder:
    """The orders of one loader, and the random states that they are drawn from.

    `inexact` is called with each reason why a resumed pass is not what it was. `held`: the loader is read ahead by
    another one around it.
    """

    def __init__(self, loader: Any, generators: list[Any], inexact: Callable[[str], None], *, held: bool) -> None:
        self._find_loader, self._generators, self._inexact, self._held = weakref.ref(loader), generators, inexact, held
        #: Where the generators shall be in a resumed pass, after which others had drawn from them.
        self.generators_after: list[Any] | None = None

    def generator_states(self) -> list[Any]:
        """States of the random generators that the loader and its samplers own."""
        return [generator.get_state() for generator in self._generators]

    def set_generators(self, states: Iterable[Any]) -> None:
        """Set the loader's own generators to these states."""
        for generator, state in zip(self._generators, states):  # noqa: B905 (strict= came with 3.10)
            generator.set_state(state)

    def capture_rng(self) -> dict[str, Any]:
        """States of the process's random streams and the loader's own generators."""
        return {"random": random_streams.capture(), "generators": self.generator_states()}

    def restore_rng(self, rng: Mapping[str, Any]) -> None:
        """Go back to what `capture_rng` has returned."""
        random_streams.restore(rng["random"])
        self.set_generators(rng["generators"])

    def begin(self, now: LoaderPass) -> None:
        """Go back to where the streams were when the order was drawn; where it is drawn for the first time, note it."""
        if now.order_rng is None:
            now.order_rng = self.capture_rng()
        else:
            self.restore_rng(now.order_rng)

    def indices(self, now: LoaderPass, sampler: Iterable[Any]) -> Iterator[Any]:
        """The index sampler's batches in this pass; in a resumed one those that are left."""
        in_processes = getattr(self._find_loader(), "num_workers", 0) > 0
        resumed = now.resume_rng if now.consumed or now.order_rng else None
        skipped = 0 if now.to_repeat is not None else now.taken
        self.begin(now)
        if now.consumed:
            sampler = data_sharding.rest(self._find_loader(), now.consumed)
        rest = iter(sampler)
        first = list(itertools.islice(rest, 1))
        if resumed is not None:
            self._leave_out(rest, skipped - 1)
            random_streams.restore(resumed)
            if not self._held:
                now.resume_rng = None
        batches: Iterator[Any] = itertools.chain([] if skipped else first, rest)
        if in_processes and now.order_rng is not None:
            batches = worker_streams.seeded(batches, now.order_rng, now.ordinal, skipped)
        yield from batches

    def _leave_out(self, rest: Iterator[Any], count: int) -> None:
        before, generators = random_streams.capture(), self.generator_states()
        _drop(rest, count)
        if random_streams.moved(before):
            self._inexact(LAZY)
        if self.generators_after is None:
            return
        if all(bool((old == new).all()) for old, new in zip(generators, self.generator_states())):  # noqa: B905
            self.set_generators(self.generators_after)
        else:
            self._inexact(LAZY_AND_PASSES)

    def read_again(self, now: LoaderPass, batches: Iterator[Any]) -> None:
        """Read again what was taken, where there is no order of indices to leave it out of."""
        if now.resume_rng is None or not now.taken or has_order(self._find_loader()):
            return
        _drop(batches, now.taken)
        random_streams.restore(now.resume_rng)
        now.resume_rng = None

    def resume_streams(self, now: LoaderPass) -> None:
        """Put a resumed pass's streams back: to read ahead, its loader has drawn the order and loaded batches."""
        if now.resume_rng is None:
            return
        if random_streams.moved(now.resume_rng):
            self._inexact(READ_AHEAD)
        random_streams.restore(now.resume_rng)
        now.resume_rng = None


def _drop(items: Iterator[Any], count: int) -> None:
    collections.deque(itertools.islice(items, max(0, count)), maxlen=0)
