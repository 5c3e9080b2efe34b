"""Who starts where: a pure, deterministic function over plain data.

Order is priority class, then first come. A job that does not fit now is blocked, and is not overtaken for ever: the
node where it lacks least is kept for it. Those behind it may use other nodes, and on the kept one what the blocked job
cannot use anyway: GPUs too small for it, cores and memory beyond what it asks for. While a node is kept, its free
matching GPUs only grow in number, and the node is given up only for one that has more; so the job starts as soon as
enough of what runs there has ended.

On a node, GPUs with neighbouring indexes are taken; among nodes, the one with the fewest free GPUs left, so that big
holes stay for big jobs. Jobs without GPUs go to the node with the most free cores.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.scheduler.boxes import Box, Free, Shape, Slot, Waiting


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What an administrator may choose."""

    #: Whether a blocked job keeps a node for itself.
    keep_for_blocked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A job starts now, on these slots of a node."""

    job: str
    node: str
    uuids: tuple[str, ...]


Decision = Start


def order(waiting: Waiting) -> tuple[int, int]:
    """The place in the queue: higher priority first, then the lower number."""
    return -waiting.priority, waiting.number


def decide(queue: Iterable[Waiting], boxes: Sequence[Box], now: int, policy: Policy = Policy()) -> list[Decision]:
    """What starts now. `now` is in microseconds."""
    del now  # no rule of today looks at the time
    return _Pass(boxes, policy).run(sorted(queue, key=order))


def never_fits(shape: Shape, boxes: Sequence[Box]) -> list[str]:
    """Why no node could ever run such a job, a reason for each node; empty if one could, or if there is none yet."""
    lacks = {box.node: box.lack(shape) for box in boxes}
    if not all(lacks.values()):
        return []
    return [f"node {node} {lack}" for node, lack in sorted(lacks.items())]


class _Pass:
    """What is left while one pass hands it out."""

    def __init__(self, boxes: Sequence[Box], policy: Policy) -> None:
        self._policy = policy
        self._free = [Free.of(box) for box in sorted(boxes, key=lambda b: b.node) if box.closed is None]
        #: Shapes that can neither start nor keep a node in this pass: what is left only shrinks.
        self._hopeless: set[Shape] = set()

    def run(self, queue: Sequence[Waiting]) -> list[Decision]:
        starts = []
        for waiting in queue:
            if waiting.held or waiting.saving or waiting.shape in self._hopeless:
                continue
            free = _best(self._free, waiting.shape)
            if free is not None:
                starts.append(self._start(waiting, free))
            elif not self._keep(waiting):
                self._hopeless.add(waiting.shape)
        return starts

    def _start(self, waiting: Waiting, free: Free) -> Start:
        slots = adjacent(free.matching(waiting.shape), waiting.shape.gpus)
        free.take(waiting.shape, slots)
        return Start(job=waiting.job, node=free.node, uuids=tuple(slot.uuid for slot in slots))

    def _keep(self, waiting: Waiting) -> bool:
        """Keeps the node where the job lacks least; False if there is none to keep."""
        shape = waiting.shape
        able = [f for f in self._free if f.kept_for is None and f.total.usable.lack(shape) is None]
        if not able or not self._policy.keep_for_blocked:
            return False
        free = max(able, key=lambda f: min(len(f.matching(shape)), shape.gpus))
        free.kept_for = waiting.job
        matching = free.matching(shape)
        free.take(shape, adjacent(matching, min(len(matching), shape.gpus)))
        return True


def _best(frees: Iterable[Free], shape: Shape) -> Free | None:
    fitting = [free for free in frees if free.fits(shape)]
    if not shape.gpus:
        return max(fitting, key=lambda f: f.cpus, default=None)
    return min(fitting, key=lambda f: len(f.slots), default=None)


def adjacent(slots: Sequence[Slot], count: int) -> list[Slot]:
    """`count` of the slots whose indexes lie closest together; the first of equals."""
    in_order = sorted(slots, key=lambda slot: slot.index)
    windows = [in_order[i : i + count] for i in range(len(in_order) - count + 1)]
    return min(windows, key=lambda w: w[-1].index - w[0].index if w else 0)
