"""Placement of a job: the nodes on which it starts, and the GPUs that it gets there.

On a node the GPUs that lie closest together are taken (`topology`); among nodes, the one with the fewest free GPUs that
has enough, so that nodes with many free GPUs stay available for large jobs. Jobs that share GPUs go to the cards that
are shared already, the fullest that has enough free memory first, and never to one that a job has to itself. Jobs
without GPUs go to the node with the most free cores.

A job is spread over several nodes only if its spec says so: networks are slower than the links between GPUs of a node.
It starts when enough nodes of one kind (all with GPUs, or all without) have the capacity at once, or not at all.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import NodeInfo, Placement, ResourceRequest, Slot
from service.scheduler.model.topology import closest
from torchyard.ids import JobId


class PlacementRequest(NamedTuple):
    """Resources that a job asks for, and what decides whether it may use devices that are held for others."""

    job: JobId
    resources: ResourceRequest
    nodes: int = 1
    user: str = ""
    project: str = ""
    #: It can be preempted again by the job for which the devices are held.
    preemptible: bool = False
    #: When it will have ended, in five cases of ten, in nine of ten, and for certain. Infinite if nothing tells.
    likely_end_us: float = math.inf
    ends_us: float = math.inf
    latest_end_us: float = math.inf
    #: When it will have ended even if it takes twice as long as it is expected to.
    late_end_us: float = math.inf


class HoldKind(Enum):
    """Jobs for which nodes are held, and who may use these meanwhile."""

    #: The first blocked job in the order: who is likely to be gone when it starts, or can be preempted.
    FIRST_BLOCKED = auto()
    #: The oldest overdue job: who is gone by then for certain, by its time limit, or can be preempted.
    OLDEST_OVERDUE = auto()
    #: An overdue job in its turn (`order`): who is gone by then for certain.
    TURN = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """Devices, cores and memory of a node that are held for a blocked job."""

    job: JobId
    kind: HoldKind
    uuids: frozenset[str]
    cpus: int
    memory: int
    #: When the job is expected to start.
    until_us: float
    #: Jobs that are expected to end by then may use the held devices in any case.
    expected_end_us: float = -math.inf
    #: The job cannot start before its next turn: others that are surely gone by then may use the held devices.
    turn_us: float = -math.inf

    def lets(self, request: PlacementRequest) -> bool:
        """Return whether the request's job may use the held devices for the time being."""
        if (
            self.job == request.job
            or (request.preemptible and self.kind is not HoldKind.TURN)
            or request.ends_us <= self.expected_end_us
            or request.late_end_us <= self.turn_us
        ):
            return True
        # A risk of a half: `docs/scheduling.md` has what it gains. The bound on waiting rests on other holds.
        end_us = request.likely_end_us if self.kind is HoldKind.FIRST_BLOCKED else request.latest_end_us
        return end_us <= self.until_us < math.inf


Mask = Callable[[PlacementRequest, NodeCapacity], frozenset[str] | None]


def _nothing(request: PlacementRequest, capacity: NodeCapacity) -> frozenset[str] | None:
    del request, capacity
    return frozenset()


@dataclass(kw_only=True)
class ClusterCapacity:
    """Free capacity of all open nodes during a decision; a node's is copied when it is first changed."""

    capacities: dict[str, NodeCapacity]
    #: Slots that a job must not have on a node because of reservations; None: it must not be on the node at all.
    mask: Mask = _nothing
    holds: dict[str, Hold] = field(default_factory=dict)
    #: Nodes by the number of their free slots, once that was needed.
    _by_free: dict[int, list[str]] | None = None
    _own: set[str] = field(default_factory=set)

    def copy(self) -> "ClusterCapacity":
        """Return a copy for trials: its changes do not show here, as long as this one is not changed."""
        return ClusterCapacity(capacities=self.capacities.copy(), mask=self.mask, holds=self.holds.copy())

    @property
    def bound(self) -> bool:
        """Return whether devices are held or reserved, so that one job may be refused what another may have."""
        return bool(self.holds) or self.reserved

    @property
    def reserved(self) -> bool:
        """Return whether devices are reserved."""
        return self.mask is not _nothing

    def unbound(self) -> "ClusterCapacity":
        """Return the same capacity with nothing held or reserved."""
        return ClusterCapacity(capacities=self.capacities.copy())

    def take(self, job: JobId, resources: ResourceRequest, placements: Iterable[Placement]) -> None:
        """Allocate the placements on open nodes to a job; devices that other jobs still hold there stay theirs."""
        for placement in placements:
            if placement.node in self.capacities:
                capacity = self._writable(placement.node)
                before = len(capacity.free)
                capacity.hold(job, resources, placement.uuids)
                self._moved(placement.node, before, len(capacity.free))

    def release(self, job: Running) -> None:
        """Free the job's placements on open nodes."""
        for placement in job.placements:
            if placement.node in self.capacities:
                capacity = self._writable(placement.node)
                before = len(capacity.free)
                capacity.release(job.job, job.resources, placement.uuids)
                self._moved(placement.node, before, len(capacity.free))

    def without(self, jobs: Iterable[Running]) -> "ClusterCapacity":
        """Return a copy for trials, as it is once these jobs have left."""
        left = self.copy()
        for job in jobs:
            left.release(job)
        return left

    def find(self, request: PlacementRequest) -> tuple[Placement, ...]:
        """Return where the job can start now, one placement for each node; empty if it cannot."""
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
        """Return the places where the job can start now, the best first: one for each node, or the one that `find`
        returns if it needs several nodes.
        """
        if request.nodes == 1:
            return [(placement,) for placement in self._placements(request)]
        placements = self.find(request)
        return [placements] if placements else []

    def placement(self, request: PlacementRequest, node: str) -> Placement | None:
        """Return the slots of the node on which the job can start now; None if it cannot."""
        masked = self._masked(request, node)
        slots = None if masked is None else choose(self.capacities[node], request.resources, masked)
        return None if slots is None else Placement(node=node, uuids=tuple(slot.uuid for slot in slots))

    def fits(self, request: PlacementRequest, node: str) -> bool:
        """Return whether the job can start on the node now, which takes less time than to choose its slots."""
        masked, resources = self._masked(request, node), request.resources
        return masked is not None and len(_suitable(self.capacities[node], resources, masked)) >= resources.gpus

    def _masked(self, request: PlacementRequest, node: str) -> frozenset[str] | None:
        """Return the slots of the node that the job must not have now; None: it must not be on the node at all."""
        capacity, resources = self.capacities[node], request.resources
        if (
            not capacity.has_cpus_and_memory(resources)
            or not capacity.info.offers(resources)
            or capacity.info.outdated(resources)
            or node in resources.excluded_nodes
        ):
            return None
        masked, hold = self.mask(request, capacity), self.holds.get(node)
        if masked is None or hold is None or hold.lets(request):
            return masked
        return masked | hold.uuids if _beside(capacity, hold, resources) else None

    def _placements(self, request: PlacementRequest) -> Iterator[Placement]:
        """Yield a placement on each node that has the capacity, the best first."""
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
    """Return slots of a node for a job, none of them masked; None if too few are free."""
    slots = _suitable(capacity, resources, masked)
    if len(slots) < resources.gpus:
        return None
    if not resources.gpu_share:
        return closest(slots, resources.gpus)
    slots.sort(key=lambda slot: (slot.uuid in capacity.free, capacity.spare(slot), slot.index))
    return sorted(slots[: resources.gpus], key=lambda slot: slot.index)


def _suitable(capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str]) -> list[Slot]:
    """Return the slots of a node that a job could take now; none for a job that needs none."""
    if not resources.gpus:
        return []
    if resources.gpu_share:
        return _with_memory(capacity, resources, masked)
    if resources.any_slot and not masked:
        return list(capacity.free.values())
    return [slot for slot in capacity.free.values() if slot.suits(resources) and slot.uuid not in masked]


def _with_memory(capacity: NodeCapacity, resources: ResourceRequest, masked: frozenset[str]) -> list[Slot]:
    return [
        slot
        for slot in capacity.usable.values()
        if slot.suits(resources) and slot.uuid not in masked and capacity.spare(slot) >= resources.gpu_share
    ]


def _fresh(capacity: NodeCapacity, resources: ResourceRequest) -> int:
    """Return how many unused cards a sharing job would have to take."""
    touched = sum(slot.uuid not in capacity.free for slot in _with_memory(capacity, resources, frozenset()))
    return max(resources.gpus - touched, 0)


def _beside(capacity: NodeCapacity, hold: Hold, resources: ResourceRequest) -> bool:
    """Return whether the free cores and memory suffice without those that are held."""
    cpus, memory = capacity.cpus - hold.cpus, capacity.memory - hold.memory
    return (not resources.cpus or resources.cpus <= cpus) and (not resources.memory or resources.memory <= memory)


def _sort(resources: ResourceRequest, info: NodeInfo) -> bool:
    """Return whether the node is of the kind with GPUs; always False for jobs without slots, which can run anywhere.

    Nodes of the two kinds are never mixed: ranks on GPUs and ranks on CPUs cannot communicate.
    """
    return bool(resources.gpus) and info.word == "GPUs"


def sorts(infos: Sequence[NodeInfo], resources: ResourceRequest) -> list[list[NodeInfo]]:
    """Return the nodes grouped by the kind of their slots, those with GPUs first."""
    found: dict[bool, list[NodeInfo]] = {}
    for info in infos:
        found.setdefault(_sort(resources, info), []).append(info)
    return [found[sort] for sort in (True, False) if sort in found]
