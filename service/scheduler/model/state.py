"""What the policy knows: who waits, who runs, what there is, and what each is entitled to.

Plain data without a database and without a clock: the live scheduler, the simulator and the tests each fill it in their
own way and then run the same policy. Times are integer microseconds, sizes bytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from service.scheduler.model import rows
from service.scheduler.model.boxes import Box, Place
from service.scheduler.model.jobs import Account, Estimate, Job, Reservation, Running, Waiting
from service.scheduler.model.lanes import Lanes
from service.scheduler.model.rooms import Room
from service.scheduler.model.table import Table


@dataclass(kw_only=True)
class State:
    """Everything that one decision looks at. Change jobs through the methods alone: they keep what is derived true. The
    other mappings may be replaced, or change between two decisions.
    """

    boxes: Mapping[str, Box] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    users: Mapping[str, Account] = field(default_factory=dict)
    projects: Mapping[str, Account] = field(default_factory=dict)
    #: Trials that a sweep may run at once; sweeps without a cap are absent.
    caps: Mapping[str, int] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()
    #: Jobs that others were stopped for and that have not started yet: they have the first look at what is free.
    promised: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._derive()
        for waiting in self.waiting.values():
            self._enter(waiting)
        for running in self.running.values():
            self._enter(running)

    def _derive(self) -> None:
        self.lanes = Lanes()
        self.table = Table()
        #: Running jobs of each sweep.
        self.trials: dict[str, int] = {}
        #: Running jobs that share GPUs.
        self.sharing: dict[str, None] = {}
        #: Running jobs that give way, for each preemptor.
        self.yielding: dict[str, dict[str, None]] = {}
        self._rooms: dict[str, Room] = {}

    def put(self, jobs: Iterable[Waiting | Running]) -> None:
        """Adds jobs, or replaces what was known of them; one that ran and now waits (or the other way round) moves."""
        for job in jobs:
            self._leave(job.job, runs_on=isinstance(job, Running))
            if isinstance(job, Waiting):
                self.waiting[job.job] = job
            else:
                self.running[job.job] = job
                self.promised.pop(job.job, None)
            self._enter(job)

    def remove(self, job: str) -> None:
        """Forgets a job that is over; an unknown one is no error."""
        self._leave(job, runs_on=False)
        if job in self.table.rows:
            self.lanes.drop(self.table.remove(job))
        self.promised.pop(job, None)

    def start(self, job: str, places: tuple[Place, ...], now_us: int) -> Running:
        """Moves a waiting job to where it runs."""
        waiting = self.waiting[job]
        common = {name: getattr(waiting, name) for name in _COMMON}
        left = waiting.remaining
        if left is not None:
            common["remaining"] = Estimate(
                p10_us=left.p10_us, p50_us=left.p50_us, p90_us=left.p90_us, source=left.source, as_of_us=now_us
            )
        ends_us = None if waiting.limit_us is None else now_us + waiting.limit_us
        running = Running(**common, places=places, since_us=now_us, ends_us=ends_us)
        self.put([running])
        return running

    def requeue(self, job: str, now_us: int, remaining: Estimate | None = None) -> Waiting:
        """Moves a running job back to the queue, with its age, and with what it ran counted; `remaining` is what is
        known better of it now.
        """
        running = self.running[job]
        common: dict[str, Any] = {name: getattr(running, name) for name in _COMMON}
        common["ran_us"] = running.ran_us + now_us - running.since_us
        left = running.remaining
        if remaining is not None:
            common["remaining"] = remaining
        elif left is not None and left.as_of_us is not None:
            gone = now_us - left.as_of_us
            points = {name: max(getattr(left, name) - gone, 0) for name in ("p10_us", "p50_us", "p90_us")}
            common["remaining"] = replace(left, as_of_us=None, **points)
        waiting = Waiting(**common)
        self.put([waiting])
        return waiting

    def copy(self) -> "State":
        """Independent of this one: what is done to it does not touch this one."""
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other.waiting, other.running = self.waiting.copy(), self.running.copy()
        other.promised, other.trials = self.promised.copy(), self.trials.copy()
        other.sharing = self.sharing.copy()
        other.lanes = self.lanes.copy()
        other.table = self.table.copy()
        other.yielding = {job: victims.copy() for job, victims in self.yielding.items()}
        other._rooms = {node: room.copy() for node, room in self._rooms.items()}
        return other

    def rooms(self) -> dict[str, Room]:
        """What is left of each node; not to be changed."""
        rooms, boxes = self._rooms, self.boxes
        if len(rooms) != len(boxes):
            for node in rooms.keys() - boxes.keys():
                del rooms[node]
        stale = [node for node, box in boxes.items() if node not in rooms or rooms[node].box is not box]
        if stale:
            self._furnish(stale)
        return rooms

    def _furnish(self, nodes: list[str]) -> None:
        fresh = {node: Room(self.boxes[node]) for node in nodes}
        for job in self.running.values():
            for place in job.places:
                if place.node in fresh:
                    fresh[place.node].hold(job.job, job.shape, place.uuids)
        self._rooms.update(fresh)

    def _enter(self, job: Waiting | Running) -> None:
        lane = self._enter_row(job)
        if isinstance(job, Waiting):
            return
        self.lanes.count(lane, job.since_us, 1)
        if job.shape.gpu_share:
            self.sharing[job.job] = None
        if job.group is not None:
            self.trials[job.group] = self.trials.get(job.group, 0) + 1
        if job.yields_to is not None:
            self.yielding.setdefault(job.yields_to, {})[job.job] = None
        for place in job.places:
            if place.node in self._rooms:
                self._rooms[place.node].hold(job.job, job.shape, place.uuids)

    def _enter_row(self, job: Waiting | Running) -> int:
        """In the row that the job has already, if it has one; the lane's number."""
        table = self.table
        values = rows.waiting(job) if isinstance(job, Waiting) else rows.running(job)
        row = table.rows.get(job.job)
        if row is None:
            lane = self.lanes.take(rows.lane(job))
            table.add(job.job, lane, values)
        else:
            lane = self.lanes.change(int(table.lane[row]), rows.lane(job))
            table.change(row, lane, values)
        return lane

    def _leave(self, job: str, *, runs_on: bool) -> None:
        """All but its row."""
        self.waiting.pop(job, None)
        running = self.running.pop(job, None)
        if running is not None:
            self._vacate(running)
            if running.yields_to is not None:
                self._yielded(job, running.yields_to, gone=not runs_on)

    def _vacate(self, job: Running) -> None:
        self.lanes.count(int(self.table.lane[self.table.rows[job.job]]), job.since_us, -1)
        self.sharing.pop(job.job, None)
        if job.group is not None:
            self.trials[job.group] -= 1
            if not self.trials[job.group]:
                del self.trials[job.group]
        for place in job.places:
            if place.node in self._rooms:
                self._rooms[place.node].release(job.job, job.shape, place.uuids)

    def _yielded(self, victim: str, preemptor: str, *, gone: bool) -> None:
        victims = self.yielding[preemptor]
        del victims[victim]
        if not victims:
            del self.yielding[preemptor]
        if gone and preemptor in self.waiting:
            self.promised[preemptor] = None


_COMMON = tuple(Job.__dataclass_fields__)
