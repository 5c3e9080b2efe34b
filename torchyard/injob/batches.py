"""The place in a `DataLoader`: how many batches the loop has taken, and where chance was when their order was drawn.

Counted is what the loop takes, not what loader processes, or a loader around this one, have read ahead. A resumed
epoch draws its order as it was drawn and leaves out the batches that were taken, without loading them.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchyard.injob import data_sharding, passes, random_streams, unattached_loaders
from torchyard.injob.counting import count, generators, has_order
from torchyard.injob.cursor import Cursor
from torchyard.injob.epoch import Epoch
from torchyard.injob.passes import LoaderPass
from torchyard.injob.reasons import CheckpointReason, known

LAZY = "the sampler draws from the global random streams as it goes: give it its own generator"
LAZY_AND_PASSES = "the sampler draws from its generator as it goes, and so do other passes through the loader"
OTHER_BATCHES = CheckpointReason("other-batches")
READ_AHEAD = CheckpointReason("reads-ahead")


class Batches(Cursor):
    """Follows a `DataLoader`: its class is replaced by one that counts, which changes nothing else of it.

    Accelerate's loader holds another one, whose batches it reads one ahead: the outer one is counted, and the order is
    that of the inner one.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__()
        base = getattr(loader, "base_dataloader", loader)
        # Weakly: a loader in a cycle would end its processes late, at a collection that may run in another's.
        self._find = weakref.ref(loader)
        self._find_base = weakref.ref(base)
        self._reads_ahead = base is not loader
        self._generators = generators(loader, base)
        self._epoch = Epoch(self._at_end)
        self._starting = LoaderPass()
        #: Where the streams were when the epoch began, and in the one that is resumed.
        self._begun: dict[str, Any] | None = None
        self._begun_then: dict[str, Any] | None = None
        #: Where the generators shall be in a resumed pass, after which others had drawn from them.
        self._generators_after: list[Any] | None = None
        unattached_loaders.watch()
        count(loader, base, self)

    @property
    def _base(self) -> Any:
        return self._find_base()

    def _at_end(self, now: LoaderPass) -> bool:
        try:
            return now.exhausted or now.taken >= len(self._loader)
        except TypeError:  # an iterable need not know its length
            return now.exhausted

    @property
    def exhausted(self) -> bool:  # type: ignore[override]
        return self._epoch.now.exhausted

    @property
    def at_last(self) -> bool:  # type: ignore[override]
        return self._epoch.at_last

    @property
    def trailing(self) -> bool:  # type: ignore[override]
        return self._epoch.trailing

    @property
    def taken(self) -> int:  # type: ignore[override]
        return self._epoch.now.taken

    @property
    def random(self) -> dict[str, Any] | None:
        now = self._epoch.now
        return now.random_at_end or now.streams_then

    @property
    def reasons(self) -> list[str]:
        found = self._inexact + self._epoch.reasons
        return found + [reason for reason in self._epoch.pending() if reason not in found]

    @property
    def _iteration(self) -> int | None:
        """Accelerate's count of the passes that came to their end, which is the epoch that it shuffles by."""
        return int(self._loader.iteration) if self._reads_ahead and hasattr(self._loader, "iteration") else None

    def step(self) -> None:
        self._epoch.step()

    def state(self) -> Any:
        now, before = self._epoch.now, self._epoch.before()
        flaws = self._epoch.flaws() + ([passes.OTHER_LOADER] if now.taken and unattached_loaders.any_open() else [])
        return {
            "taken": now.taken,
            "consumed": now.consumed,
            "drawn": now.drawn,
            "iteration": now.iteration if now.taken else self._iteration,
            "generators": _states(self._generators),
            "replicas": data_sharding.replicas(self._base),
            "batch_size": data_sharding.batch_size(self._base),
            "before": [
                {"taken": each.taken_before or each.taken, "drawn": each.drawn, "iteration": each.iteration}
                for each in before[: passes.MOST]
            ],
            "passes_after": bool(self._epoch.after()),
            "begun": self._begun,
            "pace": [self._epoch.pace.first, self._epoch.pace.confirmed],
            "usual_end": None if self._epoch.ends.usual is None else list(self._epoch.ends.usual),
            "inexact": [str(each) for each in self._epoch.reasons + flaws],
        }

    def load(self, states: Sequence[Any], random: dict[str, Any], *, other_ranks: bool) -> None:
        state = states[0]
        replicas, batch_size = data_sharding.replicas(self._base), data_sharding.batch_size(self._base)
        same = replicas == state["replicas"] and batch_size == state["batch_size"]
        if same and not (other_ranks and replicas is None):
            goal = LoaderPass(taken=state["taken"], consumed=state["consumed"], drawn=state["drawn"])
            goal.iteration = state.get("iteration")
            self._load_epoch(state, goal)
        elif replicas is not None and state["replicas"] is not None:
            goal = LoaderPass(consumed=data_sharding.consumed(self._base, state))
            self._epoch.resume([goal] if goal.consumed else [])
        else:
            goal = LoaderPass()
            self._epoch.resume([])
            if state["taken"]:
                self._add(OTHER_BATCHES)
        goal.streams_then = random
        if goal.taken and not has_order(self._base):
            self._add(CheckpointReason("read-again", count=goal.taken))
        _set_states(self._generators, state["generators"])

    def _load_epoch(self, state: Mapping[str, Any], goal: LoaderPass) -> None:
        """Read a stored state; what checkpoints of older versions do not hold is taken to have been nothing."""
        for reason in state.get("inexact", ()):
            self._epoch.add_reason(known(reason))
        first, confirmed = state.get("pace", (None, False))
        self._epoch.pace = passes.BatchesPerStep(first, confirmed=confirmed)
        usual = state.get("usual_end")
        self._epoch.ends = passes.PassEnds(None if usual is None else passes.PassEnd(*usual))
        before = [LoaderPass(**each) for each in state.get("before", ())] if goal.taken else []
        self._begun_then = state.get("begun")
        self._generators_after = state["generators"] if goal.taken and state.get("passes_after") else None
        if goal.iteration is not None:
            self._loader.iteration = goal.iteration
        self._epoch.resume([*before, goal] if goal.taken or goal.consumed else [])

    def _add(self, reason: str) -> None:
        if reason not in self._inexact:
            self._inexact.append(reason)

    def begin(self, epoch: int, *, resumed: bool) -> None:
        super().begin(epoch, resumed=resumed)
        self._epoch.begin(resumed=resumed)
        unattached_loaders.begin()
        then, self._begun_then = self._begun_then, None
        if resumed and then is not None:
            # What the script does in an epoch before its own pass is done again, with the same chance.
            random_streams.restore(then["random"])
            _set_states(self._generators, then["generators"])
        self._begun = {"random": random_streams.capture(), "generators": _states(self._generators)}

    def end(self) -> None:
        self._epoch.end()
        self._begun = self._begun_then = None

    # What the loader's class calls.

    def start(self) -> None:
        """The loop asks the loader for an iterator."""
        self._starting = self._epoch.start()
        if self._starting.iteration is not None:
            self._loader.iteration = self._starting.iteration
        self._starting.iteration = self._iteration
        if not has_order(self._base):
            self._begin_draw(self._starting)

    def indices(self, sampler: Iterable[Any]) -> Iterator[Any]:
        """The index sampler's batches in the pass that begins; in a resumed one those that are left."""
        return self._indices(self._starting, sampler)

    def _indices(self, now: LoaderPass, sampler: Iterable[Any]) -> Iterator[Any]:
        resumed = now.streams_then if now.consumed or now.drawn else None
        skipped = 0 if now.taken_before is not None else now.taken
        self._begin_draw(now)
        if now.consumed:
            sampler = data_sharding.rest(self._base, now.consumed)
        rest = iter(sampler)
        first = list(itertools.islice(rest, 1))
        if resumed is not None:
            self._leave_out(rest, skipped - 1)
            random_streams.restore(resumed)
            if not self._reads_ahead:
                now.streams_then = None
        if not skipped:
            yield from first
        yield from rest

    def _leave_out(self, rest: Iterator[Any], count: int) -> None:
        before, generators = random_streams.capture(), _states(self._generators)
        collections.deque(itertools.islice(rest, max(0, count)), maxlen=0)
        if random_streams.moved(before):
            self._add(LAZY)
        if self._generators_after is None:
            return
        if all(bool((old == new).all()) for old, new in zip(generators, _states(self._generators))):  # noqa: B905
            _set_states(self._generators, self._generators_after)
        else:
            self._add(LAZY_AND_PASSES)

    def length(self, sampler: Any) -> int:
        """Batches of an epoch; while the rest of one is dealt anew, what there is of it."""
        now = self._epoch.now
        if now.consumed and not now.exhausted:
            return data_sharding.batches_left(self._base, now.consumed)
        return len(sampler)

    def _begin_draw(self, now: LoaderPass) -> None:
        """Go back to where the streams were when the order was drawn; where it is drawn for the first time, note it."""
        if now.drawn is None:
            now.drawn = {"random": random_streams.capture(), "generators": _states(self._generators)}
        else:
            random_streams.restore(now.drawn["random"])
            _set_states(self._generators, now.drawn["generators"])

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The loader's batches as the loop takes them."""
        return self._counted(self._starting, batches)

    def _counted(self, now: LoaderPass, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            # A loader around another one begins the inner one only now.
            self._starting = now
            self._read_again(now, batches)
            for batch in batches:
                self._restore_streams(now)
                self._epoch.take(now)
                yield batch
            self._restore_streams(now)
            now.random_at_end = random_streams.capture()
            now.exhausted = True
        finally:
            now.closed = not now.exhausted

    def _restore_streams(self, now: LoaderPass) -> None:
        """Put a resumed pass's streams back: to read ahead, its loader has drawn the order and loaded batches."""
        if now.streams_then is None:
            return
        if random_streams.moved(now.streams_then):
            self._add(READ_AHEAD)
        random_streams.restore(now.streams_then)
        now.streams_then = None

    def _read_again(self, now: LoaderPass, batches: Iterator[Any]) -> None:
        """Read again what was taken, where there is no order of indices to leave it out of."""
        if now.streams_then is None or not now.taken or has_order(self._base):
            return
        collections.deque(itertools.islice(batches, now.taken), maxlen=0)
        random_streams.restore(now.streams_then)
        now.streams_then = None


def _states(found: Sequence[Any]) -> list[Any]:
    return [generator.get_state() for generator in found]


def _set_states(found: Sequence[Any], states: Sequence[Any]) -> None:
    for generator, state in zip(found, states):  # noqa: B905 (strict= came with 3.10)
        generator.set_state(state)
