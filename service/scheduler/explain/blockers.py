"""What keeps one waiting job from starting, as plain data: what the explanations put into words."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from service.scheduler.model.boxes import Closed, Shape
from service.scheduler.model.decisions import Preempt, Spare, Start
from service.scheduler.model.jobs import IneligibleReason, Running
from service.scheduler.model.rooms import Room
from service.scheduler.model.state import State
from service.scheduler.policy.asks import ask_for
from service.scheduler.policy.decide import Pass
from service.scheduler.policy.placement import Ask, Space, choose, enough, never_fits
from service.scheduler.policy.quotas import Reached
from torchyard.spec.policy import Policy


class Obstacle(StrEnum):
    """What sort of thing keeps a job from starting."""

    #: `ineligible` says why.
    INELIGIBLE = "ineligible"
    #: No node has registered.
    NO_NODES = "no-nodes"
    #: `lack` says why the node, or all of them, could never hold it.
    NEVER_FITS = "never-fits"
    #: `reached` says which quota.
    QUOTA = "quota"
    #: It starts with the next decision.
    STARTING = "starting"
    #: `jobs` are being stopped for it.
    YIELDING = "yielding"
    #: The node takes no jobs: `closed`.
    CLOSED = "closed"
    #: The node has CPU slots, and the job needs GPUs: `lack`.
    NO_GPUS = "no-gpus"
    #: The node's worker is too old for it.
    OUTDATED = "outdated"
    #: The node runs no jobs of its owner, who has no UNIX account there.
    ACCOUNT = "account"
    #: Slots of the node that it would need cannot be used.
    UNUSABLE = "unusable"
    #: Of the node's GPUs (or memory of shared ones) `free` are free of `needed`; the rest is held by `jobs`.
    GPUS = "gpus"
    CPUS = "cpus"
    MEMORY = "memory"
    #: What is free on the node is kept for `jobs`, which come first.
    KEPT = "kept"
    #: What is free on the node is reserved: `reservation`.
    RESERVED = "reserved"
    #: It would fit on the node, but `jobs` come first and are given what is free.
    BEHIND = "behind"
    #: `free` nodes of the `needed` have room at once.
    NODES = "nodes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocker:
    """One thing in the way of a job; which fields are set depends on `obstacle`."""

    obstacle: Obstacle
    node: str | None = None
    ineligible: IneligibleReason | None = None
    reached: Reached | None = None
    closed: Closed | None = None
    lack: str | None = None
    reservation: str | None = None
    needed: int = 0
    free: int = 0
    jobs: tuple[str, ...] = ()


def blockers(state: State, job: str, now_us: int, policy: Policy) -> list[Blocker]:
    """What keeps a waiting job from starting now (`Look.blockers`)."""
    return Look(state, now_us, policy).blockers(job)


class Look:
    """One decision, and whom it passed over why; as long as the state does not change."""

    def __init__(self, state: State, now_us: int, policy: Policy) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        self._done = Pass(state, now_us, policy)
        decisions = self._done.run()
        self._starting = {decision.job for decision in decisions if isinstance(decision, Start)}
        self._yielding = {job: set(victims) for job, victims in state.yielding.items()}
        for decision in decisions:
            if isinstance(decision, Preempt):
                self._yielding.setdefault(decision.for_job, set()).add(decision.job)
            elif isinstance(decision, Spare):
                self._yielding.pop(decision.for_job, None)

    def moves(self, job: str) -> bool:
        """Whether the job starts now, or has others stopped for it."""
        return job in self._starting or job in self._yielding

    def reached(self, job: str) -> list[Reached]:
        """The quotas that keep a waiting job from starting."""
        return self._done.reached(job)

    def blockers(self, job: str) -> list[Blocker]:
        """What keeps a waiting job from starting now: what is its own first, then node by node in order of their names;
        never empty. KeyError if it does not wait.
        """
        state, waiting = self._state, self._state.waiting[job]
        if waiting.ineligible is not None:
            return [Blocker(obstacle=Obstacle.INELIGIBLE, ineligible=waiting.ineligible)]
        if not state.boxes:
            return [Blocker(obstacle=Obstacle.NO_NODES)]
        lacks = never_fits(waiting.shape, list(state.boxes.values()), waiting.nodes)
        if lacks:
            return _excluding(state, waiting.shape) or [
                Blocker(obstacle=Obstacle.NEVER_FITS, lack=lack) for lack in lacks
            ]
        if job in self._starting:
            return [Blocker(obstacle=Obstacle.STARTING)]
        if victims := self._yielding.get(job):
            return [Blocker(obstacle=Obstacle.YIELDING, jobs=tuple(sorted(victims)))]
        found = [Blocker(obstacle=Obstacle.QUOTA, reached=one) for one in self._done.reached(job)]
        return found or _of_nodes(state, ask_for(waiting, self._now_us, self._policy), self._done)


def _excluding(state: State, shape: Shape) -> list[Blocker]:
    """The nodes that could hold the job if they ran any of its owner's."""
    welcome = replace(shape, excluded_nodes=frozenset())
    nodes = sorted(shape.excluded_nodes & state.boxes.keys())
    able = (node for node in nodes if state.boxes[node].lack(welcome) is None)
    return [Blocker(obstacle=Obstacle.ACCOUNT, node=node) for node in able]


def _of_nodes(state: State, ask: Ask, done: Pass) -> list[Blocker]:
    before = Space(rooms={node: room for node, room in state.rooms().items() if room.box.closed is None})
    welcome = state.boxes.keys() - ask.shape.excluded_nodes
    found = [_of_node(state, ask, node, before, done) for node in sorted(welcome)]
    roomy = [node for node in before.rooms if before.place(ask, node) is not None]
    if ask.nodes > 1 and not enough([state.boxes[node] for node in roomy], ask.shape, ask.nodes):
        found.append(Blocker(obstacle=Obstacle.NODES, needed=ask.nodes, free=len(roomy)))
    known = [*(blocker for blocker in found if blocker is not None), *_excluding(state, ask.shape)]
    return known or [Blocker(obstacle=Obstacle.BEHIND)]


def _of_node(state: State, ask: Ask, node: str, before: Space, done: Pass) -> Blocker | None:
    """What is in the way on a node; None if the node could never hold a part of the job, unless its sort is why."""
    box = state.boxes[node]
    if box.lacks_gpus(ask.shape):
        return Blocker(obstacle=Obstacle.NO_GPUS, node=node, lack=box.lack(ask.shape))
    if box.lack(ask.shape) is not None:
        return None
    if box.closed is not None:
        return Blocker(obstacle=Obstacle.CLOSED, node=node, closed=box.closed)
    if box.outdated(ask.shape):
        return Blocker(obstacle=Obstacle.OUTDATED, node=node)
    if box.usable.lack(ask.shape) is not None:
        return Blocker(obstacle=Obstacle.UNUSABLE, node=node, lack=box.usable.lack(ask.shape))
    short = _short(state, ask, before.rooms[node])
    return short or _of_others(ask, node, done)


def _short(state: State, ask: Ask, room: Room) -> Blocker | None:
    """What running jobs hold of the node that this one lacks."""
    shape, node = ask.shape, room.box.node
    running = [state.running[job] for job in room.jobs]
    if choose(room, shape) is None:
        free = _free(room, ask)
        jobs = _names(job for job in running if any(p.node == node and p.uuids for p in job.places))
        return Blocker(obstacle=Obstacle.GPUS, node=node, needed=shape.gpus, free=free, jobs=jobs)
    if shape.cpus > max(room.cpus, 0):
        jobs = _names(job for job in running if job.shape.cpus)
        return Blocker(obstacle=Obstacle.CPUS, node=node, needed=shape.cpus, free=max(room.cpus, 0), jobs=jobs)
    if shape.memory > max(room.memory, 0):
        jobs = _names(job for job in running if job.shape.memory)
        return Blocker(obstacle=Obstacle.MEMORY, node=node, needed=shape.memory, free=max(room.memory, 0), jobs=jobs)
    return None


def _of_others(ask: Ask, node: str, done: Pass) -> Blocker:
    """It has room there as far as running jobs go: who else gets it."""
    space = done.space
    reservations = done.against(ask, node)
    if reservations:
        return Blocker(obstacle=Obstacle.RESERVED, node=node, reservation=reservations[0])
    hold = space.holds.get(node)
    if hold is not None and not hold.lets(ask):
        return Blocker(obstacle=Obstacle.KEPT, node=node, jobs=(hold.job,))
    return Blocker(obstacle=Obstacle.BEHIND, node=node, jobs=done.given(node))


def _free(room: Room, ask: Ask) -> int:
    shape = ask.shape
    if shape.gpu_share:
        return sum(slot.suits(shape) and room.spare(slot) >= shape.gpu_share for slot in room.usable.values())
    return sum(slot.suits(shape) for slot in room.free.values())


def _names(running: Iterable[Running]) -> tuple[str, ...]:
    return tuple(job.job for job in running)
