"""Reservations: the devices that each of them keeps, and the jobs that must leave them.

A reservation gets devices afresh in each decision: those that its own jobs have, then those that will be free when it
starts, on as few nodes as possible. Before it starts, other jobs may use these devices if they will have ended by then
or can be preempted; from `checkpoint_timeout` before the start on, those that can be preempted are. During it only its
users and projects get them. A maintenance has no users, and keeps whole nodes.
"""

import math
from dataclasses import dataclass, field

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.decisions import Cause, Preempt
from service.scheduler.model.jobs import ReservationInfo, Running
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import PlacementRequest
from torchyard.ids import JobId
from torchyard.spec.policy import Policy

#: Hindrance of a device that a job of the reservation itself has, and of one whose job would have to be stopped. Their
#: sum ranks the nodes: one with nothing to stop comes first, however many devices own jobs have on another.
_OWN, _STOPPABLE = -1, 1 << 20


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """A reservation that is not over, and its devices of each node."""

    reservation: ReservationInfo
    devices: dict[str, frozenset[str]] = field(default_factory=dict)

    def admits(self, user: str, project: str) -> bool:
        """Return whether the reservation is for the user or the project."""
        r = self.reservation
        return not r.maintenance and (user in r.users or project in r.projects)


class ReservationMask:
    """All reservations that are not over, as of one moment."""

    def __init__(self, state: SchedulerState, capacities: dict[str, NodeCapacity], now_us: int, policy: Policy) -> None:
        self._state, self._now_us = state, now_us
        self._notice_us = policy.checkpoint_timeout * 1_000_000
        #: CPU slots stand for GPUs only where no node has any, one that is closed for now included.
        self._unit = "gpu" if any(info.unit == "gpu" for info in state.nodes.values()) else "cpu"
        self.reserved: list[Reserved] = []
        coming = [r for r in state.reservations if r.ends_us > now_us]
        for reservation in sorted(coming, key=lambda r: (r.starts_us, r.id)):
            self.reserved.append(self._pick(reservation, capacities))

    def masked(self, request: PlacementRequest, capacity: NodeCapacity) -> frozenset[str] | None:
        """Return the slots of the node that the job must not have; None: it must not be on the node at all."""
        found: frozenset[str] = frozenset()
        for one in self.reserved:
            devices = one.devices.get(capacity.info.name)
            if devices is None or self._lets(one, request):
                continue
            if one.reservation.maintenance and one.reservation.gpus is None:
                return None
            found |= devices
        return found

    def against(self, request: PlacementRequest) -> list[Reserved]:
        """Return the reservations whose devices the job must not have now."""
        return [one for one in self.reserved if one.devices and not self._lets(one, request)]

    def evictions(self, policy: Policy) -> list[Preempt]:
        """Return the preemptions that are needed now for reservations that are about to start, or have started."""
        if not policy.preemption:
            return []
        due = [one for one in self.reserved if self._now_us >= one.reservation.starts_us - self._notice_us]
        found: dict[JobId, Preempt] = {}
        for one in due:
            for job in self._state.running.values():
                if job.job not in found and self._must_go(job, one):
                    found[job.job] = Preempt(job=job.job, for_job=one.reservation.id, reason=Cause.RESERVATION)
        return sorted(found.values(), key=lambda preempt: preempt.job)

    def _must_go(self, job: Running, one: Reserved) -> bool:
        if not job.preemptible or job.preempted_for is not None or job.spared_until_us > self._now_us:
            return False
        if one.admits(job.user, job.project) or end_us(job, "p90_us", self._now_us) <= one.reservation.starts_us:
            return False
        whole = one.reservation.maintenance and one.reservation.gpus is None
        return any(
            placement.node in one.devices and (whole or one.devices[placement.node] & set(placement.uuids))
            for placement in job.placements
        )

    def _lets(self, one: Reserved, request: PlacementRequest) -> bool:
        starts_us = one.reservation.starts_us
        if one.admits(request.user, request.project):
            return True
        if self._now_us >= starts_us:
            return False
        return request.ends_us <= starts_us or (request.preemptible and self._now_us < starts_us - self._notice_us)

    def _pick(self, reservation: ReservationInfo, capacities: dict[str, NodeCapacity]) -> Reserved:
        nodes = [node for node in sorted(capacities) if not reservation.nodes or node in reservation.nodes]
        if reservation.gpus is None:
            everything = {node: frozenset(slot.uuid for slot in capacities[node].info.slots) for node in nodes}
            return Reserved(reservation=reservation, devices=everything)
        ready = {node: self._ready(Reserved(reservation=reservation), capacities[node]) for node in nodes}
        return Reserved(reservation=reservation, devices=_packed(ready, reservation.gpus))

    def _ready(self, one: Reserved, capacity: NodeCapacity) -> list[tuple[int, str]]:
        """Return the node's devices that no other reservation has at that time, by how much jobs are in the way."""
        taken = self._taken(one.reservation, capacity.info.name)
        hindrance: dict[str, int] = {}
        for name in capacity.jobs:
            job = self._state.running[name]
            for placement in job.placements:
                for uuid in placement.uuids if placement.node == capacity.info.name else ():
                    hindrance[uuid] = max(hindrance.get(uuid, _OWN), self._hindrance_of(job, one))
        free = [slot for slot in capacity.usable.values() if slot.kind == self._unit and slot.uuid not in taken]
        slots = sorted(free, key=lambda slot: (hindrance.get(slot.uuid, 0), -slot.index))
        return [(hindrance.get(slot.uuid, 0), slot.uuid) for slot in slots]

    def _taken(self, reservation: ReservationInfo, node: str) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for other in self.reserved:
            r = other.reservation
            if r.starts_us < reservation.ends_us and reservation.starts_us < r.ends_us:
                found |= other.devices.get(node, frozenset())
        return found

    def _hindrance_of(self, job: Running, one: Reserved) -> int:
        """Return 0 for a job that is none, less for its own, more for others, most for one that would have to end."""
        if one.admits(job.user, job.project):
            return _OWN
        if job.preempted_for == one.reservation.id or end_us(job, "p90_us", self._now_us) <= one.reservation.starts_us:
            return 0
        return _STOPPABLE if job.preemptible else 2 * _STOPPABLE


def _packed(ready: dict[str, list[tuple[int, str]]], gpus: int) -> dict[str, frozenset[str]]:
    """Return so many devices by node, on as few nodes as possible."""
    found: dict[str, frozenset[str]] = {}
    for node in sorted(ready, key=lambda node: (_hindrance(ready[node], gpus), -len(ready[node]), node)):
        chosen = [uuid for _, uuid in ready[node][:gpus]]
        if chosen:
            found[node] = frozenset(chosen)
            gpus -= len(chosen)
    return found


def _hindrance(ready: list[tuple[int, str]], gpus: int) -> float:
    """Return how much running jobs are in the way of reserving so many devices; infinite if there are too few."""
    return math.inf if len(ready) < gpus else sum(hindrance for hindrance, _ in ready[:gpus])
