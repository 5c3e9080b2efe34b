"""Who starts where: a pure, deterministic function over plain data.

Order is priority class, then first come. A job that does not fit now is blocked, and is not overtaken for ever: the
node where it lacks least is kept for it. Those behind it may use other nodes, and on the kept one what the blocked job
cannot use anyway: GPUs too small for it, cores and memory beyond what it asks for. While a node is kept, its free
matching GPUs only grow in number, and the node is given up only for one that has more; so the job starts as soon as
enough of what runs there has ended.

On a node, GPUs with neighbouring indexes are taken; among nodes, the one with the fewest free GPUs left, so that big
holes stay for big jobs. Jobs without GPUs go to the node with the most free cores.

A job is spread over several nodes only if its spec says so: networks are slower than what joins the GPUs of one node.
It starts when enough nodes of one sort (all with GPUs, or all without) have room at once, and until then as many nodes
are kept for it as it needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.scheduler.boxes import Box, Free, Place, Shape, Slot, Waiting


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What an administrator may choose."""

    #: Whether a blocked job keeps a node for itself.
    keep_for_blocked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A job starts now, on these slots of each of its nodes."""

    job: str
    places: tuple[Place, ...]


Decision = Start


def order(waiting: Waiting) -> tuple[int, int]:
    """The place in the queue: higher priority first, then the lower number."""
    return -waiting.priority, waiting.number


def decide(queue: Iterable[Waiting], boxes: Sequence[Box], now: int, policy: Policy = Policy()) -> list[Decision]:
    """What starts now. `now` is in microseconds."""
    del now  # no rule of today looks at the time
    return _Pass(boxes, policy).run(sorted(queue, key=order))


def never_fits(shape: Shape, boxes: Sequence[Box], nodes: int = 1) -> list[str]:
    """Why such a job could never run, with a reason for each node that is no help; empty if it could, or if there is
    no node yet.
    """
    able = [box for box in boxes if box.lack(shape) is None]
    if not boxes or any(len(same) >= nodes for same in _sorts(able, shape)):
        return []
    lacks = [f"node {box.node} {box.lack(shape)}" for box in sorted(boxes, key=lambda b: b.node) if box not in able]
    return lacks if nodes == 1 else [_too_few(able, shape, nodes), *lacks]


def _too_few(able: Sequence[Box], shape: Shape, nodes: int) -> str:
    sorts = [same for same in _sorts(able, shape) if same]
    found = " and ".join(f"{len(same)} with {same[0].word}" for same in sorts) if len(sorts) > 1 else str(len(able))
    return f"the job needs {nodes} nodes of one sort, and only {found} could hold a part of it"


def enough(boxes: Sequence[Box], shape: Shape, nodes: int) -> bool:
    """Whether the job could be spread over these nodes, each of which has room."""
    return any(len(same) >= nodes for same in _sorts(boxes, shape))


def _sorts(boxes: Sequence[Box], shape: Shape) -> tuple[list[Box], ...]:
    """The nodes apart by what their slots are: ranks on GPUs and ranks on CPUs cannot talk to each other."""
    if not shape.gpus:
        return (list(boxes),)
    gpus = [box for box in boxes if box.word == "GPUs"]
    return gpus, [box for box in boxes if box.word != "GPUs"]


class _Pass:
    """What is left while one pass hands it out."""

    def __init__(self, boxes: Sequence[Box], policy: Policy) -> None:
        self._policy = policy
        self._free = [Free.of(box) for box in sorted(boxes, key=lambda b: b.node) if box.closed is None]
        #: What can neither start nor keep a node in this pass: what is left only shrinks.
        self._hopeless: set[tuple[Shape, int]] = set()

    def run(self, queue: Sequence[Waiting]) -> list[Decision]:
        starts = []
        for waiting in queue:
            if waiting.held or waiting.saving or (waiting.shape, waiting.nodes) in self._hopeless:
                continue
            frees = _best(self._free, waiting.shape, waiting.nodes)
            if frees:
                places = tuple(self._take(waiting.shape, free) for free in frees)
                starts.append(Start(job=waiting.job, places=places))
            elif not self._keep(waiting):
                self._hopeless.add((waiting.shape, waiting.nodes))
        return starts

    def _take(self, shape: Shape, free: Free) -> Place:
        slots = adjacent(free.matching(shape), shape.gpus)
        free.take(shape, slots)
        return Place(node=free.node, uuids=tuple(slot.uuid for slot in slots))

    def _keep(self, waiting: Waiting) -> bool:
        """Keeps the nodes where the job lacks least; False if there are not enough to keep."""
        shape = waiting.shape
        able = [f for f in self._free if f.kept_for is None and f.total.usable.lack(shape) is None]
        if not self._policy.keep_for_blocked:
            return False
        choices = [same for same in _alike(able, shape) if len(same) >= waiting.nodes]
        if not choices:
            return False
        best = max((_nearest(same, shape, waiting.nodes) for same in choices), key=lambda kept: _have(kept, shape))
        for free in best:
            free.kept_for = waiting.job
            matching = free.matching(shape)
            free.take(shape, adjacent(matching, min(len(matching), shape.gpus)))
        return True


def _have(frees: Sequence[Free], shape: Shape) -> int:
    """Free slots that count towards the job."""
    return sum(min(len(free.matching(shape)), shape.gpus) for free in frees)


def _nearest(frees: Sequence[Free], shape: Shape, nodes: int) -> list[Free]:
    return sorted(frees, key=lambda f: -_have([f], shape))[:nodes]


def _best(frees: Iterable[Free], shape: Shape, nodes: int) -> list[Free]:
    """The nodes to start on; empty if too few have room."""
    fitting = [free for free in frees if free.fits(shape)]
    if nodes == 1:
        return [min(fitting, key=lambda f: _room(f, shape))] if fitting else []
    choices = [sorted(same, key=lambda f: _room(f, shape))[:nodes] for same in _alike(fitting, shape)]
    choices = [chosen for chosen in choices if len(chosen) == nodes]
    return min(choices, key=lambda chosen: sum(_room(free, shape) for free in chosen), default=[])


def _room(free: Free, shape: Shape) -> int:
    """The least goes first: few free slots, or many free cores."""
    return len(free.slots) if shape.gpus else -free.cpus


def _alike(frees: Sequence[Free], shape: Shape) -> list[list[Free]]:
    by_node = {free.node: free for free in frees}
    return [[by_node[box.node] for box in same] for same in _sorts([free.total for free in frees], shape)]


def adjacent(slots: Sequence[Slot], count: int) -> list[Slot]:
    """`count` of the slots whose indexes lie closest together; the first of equals."""
    in_order = sorted(slots, key=lambda slot: slot.index)
    windows = [in_order[i : i + count] for i in range(len(in_order) - count + 1)]
    return min(windows, key=lambda w: w[-1].index - w[0].index if w else 0)
