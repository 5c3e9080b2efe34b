"""Where a job starts: on which nodes, and on which of their GPUs.

On a node the GPUs that lie closest together are taken (`topology`); among nodes, the one with the fewest free GPUs that
has enough, so that big holes stay for big jobs. Jobs that share GPUs go to the cards that are shared already, the
fullest that has room first, and never to one that somebody has whole. Jobs without GPUs go to the node with the most
free cores.

A job is spread over several nodes only if its spec says so: networks are slower than what joins the GPUs of one node.
It starts when enough nodes of one sort (all with GPUs, or all without) have room at once, or not at all.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.scheduler.model.boxes import Box, Place, Shape, Slot
from service.scheduler.model.rooms import Room
from service.scheduler.model.topology import closest


class Ask(NamedTuple):
    """What a job wants to have, and what decides whether it may have what is held for others."""

    job: str
    shape: Shape
    nodes: int = 1
    user: str = ""
    project: str = ""
    #: It can be stopped again for whom the place is held.
    yielding: bool = False
    #: When it will be over: nine times of ten, and for certain. Infinite if nothing tells.
    ends_us: float = math.inf
    surely_ends_us: float = math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """What is held of a node for a job that is blocked."""

    job: str
    uuids: frozenset[str]
    cpus: int
    memory: int
    #: When the job is expected to start: whoever is over by then does not delay it.
    until_us: float
    #: Those that will be over by then must be so for certain, by their limits.
    surely: bool = False
    #: Those that can be stopped again for this job may have it too.
    lent: bool = True
    #: Those that are expected to be over by then may have it all the same.
    hoped_us: float = -math.inf

    def lets(self, ask: Ask) -> bool:
        """Return whether a job may have what is held, for the time being."""
        if self.job == ask.job or (self.lent and ask.yielding) or ask.ends_us <= self.hoped_us:
            return True
        ends_us = ask.surely_ends_us if self.surely else ask.ends_us
        return ends_us <= self.until_us < math.inf


Mask = Callable[[Ask, Room], frozenset[str] | None]


def _nothing(ask: Ask, room: Room) -> frozenset[str] | None:
    del ask, room
    return frozenset()


@dataclass(kw_only=True)
class Space:
    """What is left of all open nodes while a decision hands it out; rooms are copied when they are first changed."""

    rooms: dict[str, Room]
    #: Slots that a job must not have on a node because of reservations; None: nothing of the node.
    mask: Mask = _nothing
    holds: dict[str, Hold] = field(default_factory=dict)
    #: Nodes by the number of their free slots, once somebody has asked.
    _by_free: dict[int, list[str]] | None = None
    _own: set[str] = field(default_factory=set)

    def copy(self) -> "Space":
        """To try something: changes of it do not show here, as long as this one does not change."""
        return Space(rooms=self.rooms.copy(), mask=self.mask, holds=self.holds.copy())

    @property
    def bound(self) -> bool:
        """Whether something is held or reserved, so that one job may be refused what another may have."""
        return bool(self.holds) or self.mask is not _nothing

    def unbound(self) -> "Space":
        """The same with nothing held or reserved."""
        return Space(rooms=self.rooms.copy())

    def take(self, job: str, shape: Shape, places: Iterable[Place]) -> None:
        """Gives places to a job; what others still hold of them stays theirs."""
        for place in places:
            room = self._writable(place.node)
            before = len(room.free)
            room.hold(job, shape, place.uuids)
            self._moved(place.node, before, len(room.free))

    def release(self, job: str, shape: Shape, places: Iterable[Place]) -> None:
        """Takes them back; nothing on nodes that are closed."""
        for place in places:
            if place.node in self.rooms:
                room = self._writable(place.node)
                before = len(room.free)
                room.release(job, shape, place.uuids)
                self._moved(place.node, before, len(room.free))

    def find(self, ask: Ask) -> tuple[Place, ...]:
        """Where the job can start now; empty if it cannot."""
        if ask.nodes == 1:
            place = next(self._places(ask), None)
            return () if place is None else (place,)
        by_sort: dict[bool, list[Place]] = {}
        for place in self._places(ask):
            sort = _sort(ask.shape, self.rooms[place.node].box)
            by_sort.setdefault(sort, []).append(place)
            if len(by_sort[sort]) == ask.nodes:
                return tuple(by_sort[sort])
        return ()

    def all_places(self, ask: Ask) -> list[tuple[Place, ...]]:
        """Where else the job can start now, the best first: on each node, or where `find` says if it needs several."""
        if ask.nodes == 1:
            return [(place,) for place in self._places(ask)]
        places = self.find(ask)
        return [places] if places else []

    def place(self, ask: Ask, node: str) -> Place | None:
        """Where on the node the job can start now."""
        room = self.rooms[node]
        shape = ask.shape
        if not room.roomy(shape) or not shape.labels <= room.box.labels or room.box.outdated(shape):
            return None
        if node in shape.excluded_nodes:
            return None
        masked = self.mask(ask, room)
        if masked is None:
            return None
        hold = self.holds.get(node)
        if hold is not None and not hold.lets(ask):
            masked |= hold.uuids
            if not _beside(room, hold, shape):
                return None
        slots = choose(room, shape, masked)
        return None if slots is None else Place(node=node, uuids=tuple(slot.uuid for slot in slots))

    def _places(self, ask: Ask) -> Iterator[Place]:
        """A place on each node that has room, the best first."""
        for node in self._nodes(ask.shape):
            place = self.place(ask, node)
            if place is not None:
                yield place

    def _nodes(self, shape: Shape) -> Iterable[str]:
        if not shape.gpus:
            return sorted(self.rooms, key=lambda node: (-self.rooms[node].cpus, node))
        if shape.gpu_share:
            return sorted(
                self.rooms, key=lambda node: (_fresh(self.rooms[node], shape), len(self.rooms[node].free), node)
            )
        if self._by_free is None:
            self._by_free = {}
            for node in sorted(self.rooms):
                self._by_free.setdefault(len(self.rooms[node].free), []).append(node)
        by_free = self._by_free
        return [node for count in sorted(by_free) if count >= shape.gpus for node in by_free[count]]

    def _writable(self, node: str) -> Room:
        if node not in self._own:
            self._own.add(node)
            self.rooms[node] = self.rooms[node].copy()
        return self.rooms[node]

    def _moved(self, node: str, before: int, after: int) -> None:
        if before == after or self._by_free is None:
            return
        group = self._by_free[before]
        group.remove(node)
        if not group:
            del self._by_free[before]
        group = self._by_free.setdefault(after, [])
        group.append(node)
        group.sort()


def choose(room: Room, shape: Shape, masked: frozenset[str] = frozenset()) -> list[Slot] | None:
    """Slots of a node for a job, none of them masked; None if too few are free."""
    if not shape.gpus:
        return []
    if shape.gpu_share:
        return _shared(room, shape, masked)
    if len(room.free) < shape.gpus:
        return None
    if shape.any_slot and not masked:
        return closest(list(room.free.values()), shape.gpus)
    suitable = [slot for slot in room.free.values() if slot.suits(shape) and slot.uuid not in masked]
    return closest(suitable, shape.gpus) if len(suitable) >= shape.gpus else None


def _shared(room: Room, shape: Shape, masked: frozenset[str]) -> list[Slot] | None:
    roomy = _with_room(room, shape, masked)
    if len(roomy) < shape.gpus:
        return None
    roomy.sort(key=lambda slot: (slot.uuid in room.free, room.spare(slot), slot.index))
    return sorted(roomy[: shape.gpus], key=lambda slot: slot.index)


def _with_room(room: Room, shape: Shape, masked: frozenset[str]) -> list[Slot]:
    return [
        slot
        for slot in room.usable.values()
        if slot.suits(shape) and slot.uuid not in masked and room.spare(slot) >= shape.gpu_share
    ]


def _fresh(room: Room, shape: Shape) -> int:
    """Untouched cards that a sharing job would have to take."""
    touched = sum(slot.uuid not in room.free for slot in _with_room(room, shape, frozenset()))
    return max(shape.gpus - touched, 0)


def _beside(room: Room, hold: Hold, shape: Shape) -> bool:
    """Whether cores and memory suffice beside what is held."""
    cpus, memory = room.cpus - hold.cpus, room.memory - hold.memory
    return (not shape.cpus or shape.cpus <= cpus) and (not shape.memory or shape.memory <= memory)


def _sort(shape: Shape, box: Box) -> bool:
    """Ranks on GPUs and ranks on CPUs cannot talk to each other; jobs without either can be anywhere."""
    return bool(shape.gpus) and box.word == "GPUs"


def sorts(boxes: Sequence[Box], shape: Shape) -> list[list[Box]]:
    """The nodes apart by what their slots are, those with GPUs first."""
    found: dict[bool, list[Box]] = {}
    for box in boxes:
        found.setdefault(_sort(shape, box), []).append(box)
    return [found[sort] for sort in (True, False) if sort in found]


def never_fits(shape: Shape, boxes: Sequence[Box], nodes: int = 1) -> list[str]:
    """Why such a job could never run, with a reason for each node that is no help; empty if it could, or if there is
    no node yet.
    """
    able = [box for box in boxes if box.lack(shape) is None]
    if not boxes or enough(able, shape, nodes):
        return []
    lacks = [f"node {box.node} {box.lack(shape)}" for box in sorted(boxes, key=lambda b: b.node) if box not in able]
    return lacks if nodes == 1 else [_too_few(able, shape, nodes), *lacks]


def enough(boxes: Sequence[Box], shape: Shape, nodes: int) -> bool:
    """Whether the job could be spread over these nodes, each of which has room."""
    return any(len(same) >= nodes for same in sorts(boxes, shape))


def _too_few(able: Sequence[Box], shape: Shape, nodes: int) -> str:
    same = sorts(able, shape)
    found = " and ".join(f"{len(one)} with {one[0].word}" for one in same) if len(same) > 1 else str(len(able))
    return f"the job needs {nodes} nodes of one sort, and only {found} could hold a part of it"
