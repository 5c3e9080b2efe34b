"""What is held for a job that is blocked, so that those behind it do not hold it off for ever.

Held are the nodes where it can start first, by what is known of the jobs that run there (`ends`), and where
nothing is known, where the last job that must end began first. Others may have what it cannot use, what they leave
again before it could start, and what they can be made to leave.

For the oldest job that is overdue, more is held. Its nodes are those where the youngest of the jobs in its way that
cannot be stopped began first. No such job starts there any more unless its limit ends it in time; or unless it is
expected to be gone before one in the way that was there when this job became the oldest (`oldest_since`). So once these
are gone, which takes no longer than such a job runs, that moment only moves back from decision to decision: what the
node does not do while it drains is bounded, and so is what wrong estimates do to the oldest. In its turn (`order`)
nobody at all starts there, and it stops all others.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.scheduler.model.boxes import Box, Shape
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.rooms import Room
from service.scheduler.model.state import State
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import Ask, Hold, Space, choose, sorts


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """When a node will have room for a job: at the earliest, and since when the youngest job in its way has run."""

    node: str
    at_us: float
    youngest_us: float
    #: When those in its way are expected to be gone that were there by `Need.since_us`.
    hoped_us: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A blocked job."""

    ask: Ask
    now_us: int
    #: Only what is certain counts: it is the oldest that is overdue, or it is its turn.
    surely: bool = False
    #: It may stop jobs that can be stopped.
    may_preempt: bool = False
    #: Those may have what is held meanwhile.
    lent: bool = True
    #: Since when it is the oldest that is overdue (`oldest_since`).
    since_us: float = -math.inf


def oldest_since(job: Waiting, state: State, longest_wait_us: float, *, may_preempt: bool) -> float:
    """Since when an overdue job is the oldest of them, as far as what runs still tells: since it is overdue, or the
    last older one started that cannot be stopped.
    """
    older = (one for one in state.running.values() if one.eligible_us < job.eligible_us)
    starts = [one.since_us for one in older if not (may_preempt and one.preemptible)]
    return max([job.eligible_us + job.ran_us + longest_wait_us, *starts])


def hold_nodes(space: Space, state: State, need: Need) -> bool:
    """Hold nodes for a blocked job; False if there are too few to hold."""
    ask = need.ask
    if any(hold.job == ask.job for hold in space.holds.values()):
        return True
    chosen = _chosen(space, state, need)
    until_us = max((one.at_us for one in chosen), default=math.inf)
    for one in chosen:
        space.holds[one.node] = Hold(
            job=ask.job,
            uuids=_wanted(space, one.node, ask),
            cpus=ask.shape.cpus,
            memory=ask.shape.memory,
            until_us=until_us,
            surely=need.surely,
            lent=need.lent,
            hoped_us=max(one.hoped_us for one in chosen),
        )
    return bool(chosen)


def _chosen(space: Space, state: State, need: Need) -> list[Opening]:
    able = [
        room.box for node, room in space.rooms.items() if node not in space.holds and _could_hold(room, space, need.ask)
    ]
    choices = [_best(space, state, same, need) for same in sorts(able, need.ask.shape)]
    complete = [chosen for chosen in choices if len(chosen) == need.ask.nodes]
    return min(complete, key=lambda chosen: max(_rank(one, need) for one in chosen), default=[])


def _best(space: Space, state: State, boxes: Iterable[Box], need: Need) -> list[Opening]:
    openings = [opening(space.rooms[box.node], state, need, space) for box in boxes]
    return sorted(openings, key=lambda one: _rank(one, need))[: need.ask.nodes]


def _rank(one: Opening, need: Need) -> tuple[float, float, str]:
    return (one.youngest_us, 0, one.node) if need.surely else (one.at_us, one.youngest_us, one.node)


def _could_hold(room: Room, space: Space, ask: Ask) -> bool:
    """Whether the job fits there once all others are gone, as far as reservations let it."""
    masked = space.mask(ask, room)
    if masked is None or room.box.outdated(ask.shape) or room.box.usable.lack(ask.shape) is not None:
        return False
    return not masked or choose(Room(room.box), ask.shape, masked) is not None


def opening(room: Room, state: State, need: Need, space: Space) -> Opening:
    """When the node will have room for the job, if those that run there end as expected, or as they must."""
    trial = _Trial(room, need.ask.shape, space.mask(need.ask, room) or frozenset())
    running = [state.running[job] for job in room.jobs if job in state.running]
    at_us, youngest_us, hoped_us = float(need.now_us), 0.0, -math.inf
    for job in sorted(running, key=lambda job: _turn(job, need)):
        if trial.fits():
            break
        trial.without(job)
        at_us = max(at_us, _end(job, need))
        if not _gives_way(job, need):
            youngest_us = max(youngest_us, job.since_us)
            if job.since_us <= need.since_us and (likely_us := end_us(job, "p90_us", need.now_us)) < math.inf:
                hoped_us = max(hoped_us, likely_us)
    return Opening(node=room.box.node, at_us=at_us, youngest_us=youngest_us, hoped_us=hoped_us)


class _Trial:
    """A node that jobs leave, until another fits."""

    def __init__(self, room: Room, shape: Shape, masked: frozenset[str]) -> None:
        self._room, self._shape, self._masked = room, shape, masked
        #: Only the number of free slots counts, which is quicker to find than the slots.
        self._counts = shape.countable and not masked and not room.shared
        self._free = set(room.free)
        if not self._counts:
            self._room = room.copy()

    def fits(self) -> bool:
        if self._counts:
            return len(self._free) >= self._shape.gpus
        return self._room.roomy(self._shape) and choose(self._room, self._shape, self._masked) is not None

    def without(self, job: Running) -> None:
        for place in job.places:
            if place.node != self._room.box.node:
                continue
            if self._counts:
                self._free.update(uuid for uuid in place.uuids if uuid in self._room.usable)
            else:
                self._room.release(job.job, job.shape, place.uuids)


def _turn(job: Running, need: Need) -> tuple[float, float, str]:
    """Who is out of the way first."""
    if need.surely:
        return 0 if _gives_way(job, need) else 1, job.since_us, job.job
    return _end(job, need), job.since_us, job.job


def _gives_way(job: Running, need: Need) -> bool:
    return need.surely and need.may_preempt and job.preemptible


def _end(job: Running, need: Need) -> float:
    if _gives_way(job, need):
        return need.now_us
    if need.surely:
        return math.inf if job.ends_us is None else max(job.ends_us, need.now_us)
    return max(end_us(job, "p90_us", need.now_us), need.now_us)


def _wanted(space: Space, node: str, ask: Ask) -> frozenset[str]:
    """The free slots if they suffice, else all that it could use."""
    room = space.rooms[node]
    masked = space.mask(ask, room) or frozenset()
    slots = choose(room, ask.shape, masked)
    if slots is not None:
        return frozenset(slot.uuid for slot in slots)
    return frozenset(slot.uuid for slot in room.usable.values() if slot.suits(ask.shape)) - masked
