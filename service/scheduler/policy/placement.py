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

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.nodes import NodeInfo, Placement, ResourceRequest, Slot
from service.scheduler.model.topology import closest


class PlacementRequest(NamedTuple):
    """What a job wants to have, and what decides whether it may have what is held for others."""

    job: str
    resources: ResourceRequest
    nodes: int = 1
    user: str = ""
    project: str = ""
    #: It can be stopped again for whom the place is held.
    preemptible: bool = False
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

    def lets(self, request: PlacementRequest) -> bool:
        """Return whether a job may have what is held, for the time being."""
        if self.job == request.job or (self.lent and request.preemptible) or request.ends_us <= self.hoped_us:
            return True
        ends_us = request.surely_ends_us if self.surely else request.ends_us
        return ends_us <= self.until_us < math.inf


Mask = Callable[[PlacementRequest, NodeCapacity], frozenset[str] | None]


def _nothing(request: PlacementRequest, capacity: NodeCapacity) -> frozenset[str] | None:
    del request, capacity
    return frozenset()


@dataclass(kw_only=True)
class ClusterCapacity:
    """What is left of all open nodes while a decision hands it out; rooms are copied when they are first changed."""

    capacities: dict[str, NodeCapacity]
    #: Slots that a job must not have on a node because of reservations; None: nothing of the node.
    mask: Mask = _nothing
    holds: dict[str, Hold] = field(default_factory=dict)
    #: Nodes by the number of their free slots, once somebody has asked.
    _by_free: dict[int, list[str]] | None = None
    _own: set[str] = field(default_factory=set)

    def copy(self) -> "ClusterCapacity":
        """To try something: changes of it do not show here, as long as this one does not change."""
        return ClusterCapacity(capacities=self.capacities.copy(), mask=self.mask, holds=self.holds.copy())

    @property
    def bound(self) -> bool:
        """Whether something is held or reserved, so that one job may be refused what another may have."""
        return bool(self.holds) or self.mask is not _nothing

    def unbound(self) -> "ClusterCapacity":
        """The same with nothing held or reserved."""
        return ClusterCapacity(capacities=self.capacities.copy())

    def take(self, job: str, resources: ResourceRequest, placements: Iterable[Placement]) -> None:
        """Gives places to a job; what others still hold of them stays theirs."""
        for placement in placements:
            capacity = self._writable(placement.node)
            before = len(capacity.free)
            capacity.hold(job, resources, placement.uuids)
            self._moved(placement.node, before, len(capacity.free))

    def release(self, job: str, resources: ResourceRequest, placements: Iterable[Placement]) -> None:
        """Takes them back; nothing on nodes that are closed."""
        for placement in placements:
            if placement.node in self.capacities:
                capacity = self._writable(placement.node)
                before = len(capacity.free)
                capacity.release(job, resources, placement.uuids)
                self._moved(placement.node, before, len(capacity.free))

    def find(self, request: PlacementRequest) -> tuple[Placement, ...]:
        """Where the job can start now; empty if it cannot."""
        if request.nodes == 1:
            placement = next(self._placements(request), None)
            return () if placement is None else (placement,)
        by_sort: dict[bool, list[Placement]] = {}
        for placement in self._placements(request):
            sort = _sort(request.resources, self.capacities[placement.node].info)
            by_sort.setdefault(sort, []).append(placement)
            if len(by_sort[sort]) == request.nodes:
                return tuple(by_sort[sort])
        return ()

    def all_placements(self, request: PlacementRequest) -> list[tuple[Placement, ...]]:
        """Where else the job can start now, the best first: on each node, or where `find` says if it needs several."""
        if request.nodes == 1:
            return [(placement,) for placement in self._placements(request)]
        placements = self.find(request)
        return [placements] if placements else []

    def placement(self, request: PlacementRequest, node: str) -> Placement | None:
        """Where on the node the job can start now."""
        capacity = self.capacities[node]
        resources = request.resources
        if (
            not capacity.roomy(resources)
            or not resources.labels <= capacity.info.labels
            or capacity.info.outdated(resources)
        ):
            return None
        if node in resources.excluded_nodes:
            return None
        masked = self.mask(request, capacity)
        if masked is None:
            return None
        hold = self.holds.get(node)
        if hold is not None and not hold.lets(request):
            masked |= hold.uuids
            if not _beside(capacity, hold, resources):
                return None
        slots = choose(capacity, resources, masked)
        return None if slots is None else Placement(node=node, uuids=tuple(slot.uuid for slot in slots))

    def _placements(self, request: PlacementRequest) -> Iterator[Placement]:
        """A place on each node that has room, the best first."""
        for node in self._nodes(request.resources):
            placement = self.placement(request, node)
            if placement is not None:
                yield placement

    def _nodes(self, resources: ResourceRequest) -> Iterable[str]:
        if not resources.gpus:
            return sorted(self.capacities, key=lambda node: (-self.capacities[node].cpus, node))
        if resources.gpu_share:
            return sorted(
                self.capacities,
                key=lambda node: (_fresh(self.capacities[node], resources), len(self.capacities[node].free), node),
            )
        if self._by_free is None:
            self._by_free = {}
            for node in sorted(self.capacities):
                self._by_free.setdefault(len(self.capacities[node].free), []).append(node)
        by_free = self._by_free
        return [node for count in sorted(by_free) if count >= resources.gpus for node in by_free[count]]

    def _writable(self, node: str) -> NodeCapacity:
        if node not in self._own:
            self._own.add(node)
            self.capacities[node] = self.capacities[node].copy()
        return self.capacities[node]

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


def choose(
    capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str] = frozenset()
) -> list[Slot] | None:
    """Slots of a node for a job, none of them masked; None if too few are free."""
    if not resources.gpus:
        return []
    if resources.gpu_share:
        return _shared(capacity, resources, masked)
    if len(capacity.free) < resources.gpus:
        return None
    if resources.any_slot and not masked:
        return closest(list(capacity.free.values()), resources.gpus)
    suitable = [slot for slot in capacity.free.values() if slot.suits(resources) and slot.uuid not in masked]
    return closest(suitable, resources.gpus) if len(suitable) >= resources.gpus else None


def _shared(capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str]) -> list[Slot] | None:
    roomy = _with_room(capacity, resources, masked)
    if len(roomy) < resources.gpus:
        return None
    roomy.sort(key=lambda slot: (slot.uuid in capacity.free, capacity.spare(slot), slot.index))
    return sorted(roomy[: resources.gpus], key=lambda slot: slot.index)


def _with_room(capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str]) -> list[Slot]:
    return [
        slot
        for slot in capacity.usable.values()
        if slot.suits(resources) and slot.uuid not in masked and capacity.spare(slot) >= resources.gpu_share
    ]


def _fresh(capacity: NodeCapacity, resources: ResourceRequest) -> int:
    """Untouched cards that a sharing job would have to take."""
    touched = sum(slot.uuid not in capacity.free for slot in _with_room(capacity, resources, frozenset()))
    return max(resources.gpus - touched, 0)


def _beside(capacity: NodeCapacity, hold: Hold, resources: ResourceRequest) -> bool:
    """Whether cores and memory suffice beside what is held."""
    cpus, memory = capacity.cpus - hold.cpus, capacity.memory - hold.memory
    return (not resources.cpus or resources.cpus <= cpus) and (not resources.memory or resources.memory <= memory)


def _sort(resources: ResourceRequest, info: NodeInfo) -> bool:
    """Ranks on GPUs and ranks on CPUs cannot talk to each other; jobs without either can be anywhere."""
    return bool(resources.gpus) and info.word == "GPUs"


def sorts(infos: Sequence[NodeInfo], resources: ResourceRequest) -> list[list[NodeInfo]]:
    """The nodes apart by what their slots are, those with GPUs first."""
    found: dict[bool, list[NodeInfo]] = {}
    for info in infos:
        found.setdefault(_sort(resources, info), []).append(info)
    return [found[sort] for sort in (True, False) if sort in found]


def never_fits(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int = 1) -> list[str]:
    """Why such a job could never run, with a reason for each node that is no help; empty if it could, or if there is
    no node yet.
    """
    able = [info for info in infos if info.lack(resources) is None]
    if not infos or enough(able, resources, nodes):
        return []
    lacks = [
        f"node {info.name} {info.lack(resources)}" for info in sorted(infos, key=lambda b: b.name) if info not in able
    ]
    return lacks if nodes == 1 else [_too_few(able, resources, nodes), *lacks]


def enough(infos: Sequence[NodeInfo], resources: ResourceRequest, nodes: int) -> bool:
    """Whether the job could be spread over these nodes, each of which has room."""
    return any(len(same) >= nodes for same in sorts(infos, resources))


def _too_few(able: Sequence[NodeInfo], resources: ResourceRequest, nodes: int) -> str:
    same = sorts(able, resources)
    found = " and ".join(f"{len(one)} with {one[0].word}" for one in same) if len(same) > 1 else str(len(able))
    return f"the job needs {nodes} nodes of one sort, and only {found} could hold a part of it"
