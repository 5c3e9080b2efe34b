"""Why a waiting job waits: pure, over the same data as the policy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.scheduler import former as policy
from service.scheduler.boxes import Box, Closed, Free, Running, Waiting
from torchyard.api import Reason
from torchyard.quantities import format_size

_CLOSED = {
    Closed.DRAINING: "is draining: it takes no new jobs until an administrator resumes it",
    Closed.UNREACHABLE: "is not heard",
    Closed.DISK_FLOOR: "is short of disk: nothing starts there until space is freed",
}
#: Jobs named in one sentence.
NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Title:
    """What a person calls a job."""

    number: int
    user: str


Titles = Mapping[str, Title]


class Scene:
    """Queue and boxes at one moment, and what the policy would start."""

    def __init__(self, queue: Sequence[Waiting], boxes: Sequence[Box], titles: Titles, now: int) -> None:
        self.queue = sorted(queue, key=policy.order)
        self.boxes = boxes
        self.titles = titles
        self.starting = frozenset(start.job for start in policy.decide(self.queue, boxes, now))
        #: Who is considered at all, in order.
        self.eligible = [waiting for waiting in self.queue if not waiting.held and not waiting.saving]

    def place(self, job: str) -> int | None:
        """The job's place in the queue, from 1; None if it does not wait."""
        return next((number for number, w in enumerate(self.queue, 1) if w.job == job), None)

    def ahead(self, waiting: Waiting, count: int) -> list[str]:
        """The first jobs that come before this one."""
        mine = policy.order(waiting)
        return [other.job for other in self.eligible[:count] if policy.order(other) < mine]


def reasons(waiting: Waiting, scene: Scene) -> list[Reason]:
    """What keeps the job from starting, the strongest first; never empty."""
    own = _of_the_job(waiting, scene.boxes)
    if own:
        return own
    if waiting.job in scene.starting:
        return [Reason(code="starting", message="starts with the next scheduling pass")]
    able = [box for box in scene.boxes if box.lack(waiting.shape) is None]
    lacking = {box.node: reason for box in able if (reason := _of_the_box(waiting, box, scene.titles)) is not None}
    roomy = [box for box in able if box.node not in lacking]
    found = list(lacking.values())
    if policy.enough(roomy, waiting.shape, waiting.nodes):
        found.append(_behind(waiting, scene))
    elif waiting.nodes > 1:
        found.append(_too_few(waiting, roomy))
    return sorted(found, key=lambda reason: _STRENGTH.index(reason.code))


def _too_few(waiting: Waiting, roomy: Sequence[Box]) -> Reason:
    names = ", ".join(box.node for box in roomy) or "none"
    message = f"needs {waiting.nodes} nodes at the same time, with room now: {names}"
    return Reason(code="nodes", message=message)


_STRENGTH = ("nodes", "gpus", "cpus", "memory", "behind", "unusable", "disk-floor", "draining", "unreachable")


def _of_the_job(waiting: Waiting, boxes: Sequence[Box]) -> list[Reason]:
    if waiting.held:
        return [Reason(code="held", message="is held: release it to let it start")]
    if waiting.saving:
        return [Reason(code="saving", message="the checkpoint of its last attempt is still being stored")]
    if not boxes:
        message = "no node has registered yet: start one with `yard up` or `yard worker`"
        return [Reason(code="no-nodes", message=message)]
    lacks = policy.never_fits(waiting.shape, boxes, waiting.nodes)
    return [Reason(code="never-fits", message=lack) for lack in lacks]


def _of_the_box(waiting: Waiting, box: Box, titles: Titles) -> Reason | None:
    """What the node lacks now; None if the job would fit there."""
    if box.closed is not None:
        return Reason(code=box.closed.value, message=f"node {box.node} {_CLOSED[box.closed]}")
    if box.usable.lack(waiting.shape) is not None:
        return Reason(code="unusable", message=f"node {box.node}: {_unusable(box)}")
    free, shape = Free.of(box), waiting.shape
    matching = len(free.matching(shape))
    if shape.gpus > matching:
        held_by = [running for running in box.running if running.uuids]
        least = f" with at least {format_size(shape.gpu_memory_min)}" if shape.gpu_memory_min else ""
        return _short("gpus", box, f"{matching} of {shape.gpus} {box.word}{least}", held_by, titles)
    if shape.cpus > free.cpus:
        short = f"{max(free.cpus, 0)} of {shape.cpus} CPU cores"
        return _short("cpus", box, short, [r for r in box.running if r.shape.cpus], titles)
    if shape.memory > free.memory:
        short = f"{format_size(max(free.memory, 0))} of {format_size(shape.memory)} memory"
        return _short("memory", box, short, [r for r in box.running if r.shape.memory], titles)
    return None


def _short(code: str, box: Box, what: str, held_by: Sequence[Running], titles: Titles) -> Reason:
    jobs = [running.job for running in held_by]
    return Reason(
        code=code,
        message=f"node {box.node} has {what} free; the rest is held by {_names(jobs, titles)}",
        jobs=jobs,
    )


def _behind(waiting: Waiting, scene: Scene) -> Reason:
    """It would fit, but what is free is kept for jobs before it."""
    ahead = scene.ahead(waiting, NAMED)
    names = _names(ahead, scene.titles)
    message = f"what is free is kept for {names}, which came before or has a higher priority"
    return Reason(code="behind", message=message, jobs=ahead)


def _unusable(box: Box) -> str:
    word = box.word.removesuffix("s")
    bad = [f"{word} {slot.index} cannot be used ({slot.unusable})" for slot in box.slots if slot.unusable]
    return ", ".join(bad)


def _names(jobs: Iterable[str], titles: Titles) -> str:
    known = [titles[job] for job in dict.fromkeys(jobs) if job in titles]
    words = [f"job {title.number} ({title.user})" for title in known[:NAMED]]
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    return (", ".join(words) + more) or "other jobs"
