"""The place in a `DataLoader`: how many batches the loop has taken of which pass (`epoch`), and where chance was.

The loader's class is replaced by one (`counting`) that tells of each pass (`start`), of the order that it draws
(`indices`, carried out by `batch_order`) and of each batch that the loop takes (`counted`). The training tells of steps
and epochs, and asks for the place at a checkpoint (`state`), to which a later run is brought (`load`).

Counted is what the loop takes, not what loader processes, or a loader around this one, have read ahead.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchyard.injob import data_sharding, passes, random_streams, unattached_loaders
from torchyard.injob.batch_order import BatchOrder
from torchyard.injob.counting import count, generators, has_order
from torchyard.injob.cursor import Cursor
from torchyard.injob.epoch import Epoch
from torchyard.injob.passes import LoaderPass, PassState
from torchyard.injob.reasons import CheckpointReason, known

OTHER_BATCHES = CheckpointReason("other-batches")


class Batches(Cursor):
    """Follows a `DataLoader`.

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
        self._order = BatchOrder(base, generators(loader, base), self._add, held=self._reads_ahead)
        self._epoch = Epoch(self._at_end)
        #: The pass that the loop has asked for last: the loader draws its order and hands out its batches later.
        self._starting = LoaderPass()
        #: Where chance was when the epoch began, and when the one began that is resumed.
        self._epoch_rng: dict[str, Any] | None = None
        self._resumed_epoch_rng: dict[str, Any] | None = None
        unattached_loaders.watch()
        count(loader, base, self)

    @property
    def _base(self) -> Any:
        return self._find_base()

    def _at_end(self, now: LoaderPass) -> bool:
        if now.exhausted:
            return True
        try:
            return now.taken >= len(self._loader)
        except TypeError:  # an iterable need not know its length
            return False

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
        return now.end_rng or now.resume_rng

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
            "drawn": now.order_rng,
            "iteration": now.iteration if now.taken else self._iteration,
            "generators": self._order.generator_states(),
            "replicas": data_sharding.replicas(self._base),
            "batch_size": data_sharding.batch_size(self._base),
            "before": [
                {"taken": each.to_repeat or each.taken, "drawn": each.order_rng, "iteration": each.iteration}
                for each in before[: passes.MOST]
            ],
            "passes_after": bool(self._epoch.after()),
            "begun": self._epoch_rng,
            "pace": [self._epoch.pace.first, self._epoch.pace.confirmed],
            "usual_end": None if self._epoch.ends.usual is None else list(self._epoch.ends.usual),
            "epoch": self._epoch.number,
            "inexact": [str(each) for each in self._epoch.reasons + flaws],
        }

    def load(self, states: Sequence[Any], random: dict[str, Any], *, other_ranks: bool) -> None:
        state = states[0]
        replicas, batch_size = data_sharding.replicas(self._base), data_sharding.batch_size(self._base)
        same = replicas == state["replicas"] and batch_size == state["batch_size"]
        if same and not (other_ranks and replicas is None):
            goal = LoaderPass(taken=state["taken"], consumed=state["consumed"], order_rng=state["drawn"])
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
        goal.resume_rng = random
        if goal.taken and not has_order(self._base):
            self._add(CheckpointReason("read-again", count=goal.taken))
        self._order.set_generators(state["generators"])

    def _load_epoch(self, state: Mapping[str, Any], goal: LoaderPass) -> None:
        """Read a stored state; what checkpoints of older versions do not hold is taken to have been nothing."""
        self._epoch.number = state.get("epoch", 0)
        for reason in state.get("inexact", ()):
            self._epoch.add_reason(known(reason))
        first, confirmed = state.get("pace", (None, False))
        self._epoch.pace = passes.BatchesPerStep(first, confirmed=confirmed)
        usual = state.get("usual_end")
        self._epoch.ends = passes.PassEnds(None if usual is None else passes.PassEnd(*usual))
        self._resumed_epoch_rng = state.get("begun")
        self._order.generators_after = state["generators"] if goal.taken and state.get("passes_after") else None
        if goal.iteration is not None:
            self._loader.iteration = goal.iteration
        before = [
            LoaderPass(taken=each["taken"], order_rng=each.get("drawn"), iteration=each.get("iteration"))
            for each in (state.get("before", ()) if goal.taken else ())
        ]
        self._epoch.resume([*before, goal] if goal.taken or goal.consumed else [])

    def _add(self, reason: str) -> None:
        if reason not in self._inexact:
            self._inexact.append(reason)

    def begin(self, epoch: int, *, resumed: bool) -> None:
        super().begin(epoch, resumed=resumed)
        self._epoch.begin(epoch, resumed=resumed)
        unattached_loaders.begin()
        if resumed and self._resumed_epoch_rng is not None:
            # What the script does in an epoch before its own pass is done again, with the same chance.
            self._order.restore_rng(self._resumed_epoch_rng)
        self._resumed_epoch_rng = None
        self._epoch_rng = self._order.capture_rng()

    def end(self) -> None:
        self._epoch.end()
        self._epoch_rng = self._resumed_epoch_rng = None

    # What the loader's class calls.

    def start(self) -> None:
        """The loop asks the loader for an iterator."""
        self._starting = self._epoch.start()
        if self._starting.iteration is not None:
            self._loader.iteration = self._starting.iteration
        self._starting.iteration = self._iteration
        if not has_order(self._base):
            self._order.begin(self._starting)

    def indices(self, sampler: Iterable[Any]) -> Iterator[Any]:
        """The index sampler's batches in the pass that begins."""
        return self._order.indices(self._starting, sampler)

    def length(self, sampler: Any) -> int:
        """Batches of an epoch; while the rest of one is dealt anew, what there is of it."""
        now = self._epoch.now
        if now.consumed and not now.exhausted:
            return data_sharding.batches_left(self._base, now.consumed)
        return len(sampler)

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The loader's batches as the loop takes them."""
        return self._counted(self._starting, batches)

    def _counted(self, now: LoaderPass, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            # A loader around another one begins the inner one only now.
            self._starting = now
            self._order.read_again(now, batches)
            for batch in batches:
                self._order.resume_streams(now)
                self._epoch.take(now)
                yield batch
            self._order.resume_streams(now)
            now.end_rng = random_streams.capture()
            now.state = PassState.EXHAUSTED
        finally:
            if now.open:
                now.state = PassState.LEFT
