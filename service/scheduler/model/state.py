"""The scheduler's state: waiting and running jobs, nodes, reservations, and the accounts of users and projects.

Plain data without a database and without a clock: the live scheduler, the simulator and the tests each fill it in their
own way and then run the same policy. Times are integer microseconds, sizes bytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from service.scheduler.model import rows
from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.equivalence import EquivalenceClasses
from service.scheduler.model.jobs import Estimate, JobInfo, ReservationInfo, Running, TenantAccount, Waiting
from service.scheduler.model.nodes import NodeInfo, Placement
from service.scheduler.model.table import Table
from torchyard.ids import JobId


@dataclass(kw_only=True)
class SchedulerState:
    """Everything that one decision is based on.

    Change jobs only through the methods, which keep derived data consistent. The other mappings may be replaced, or
    change, between two decisions.
    """

    nodes: Mapping[str, NodeInfo] = field(default_factory=dict)
    waiting: dict[JobId, Waiting] = field(default_factory=dict)
    running: dict[JobId, Running] = field(default_factory=dict)
    users: Mapping[str, TenantAccount] = field(default_factory=dict)
    projects: Mapping[str, TenantAccount] = field(default_factory=dict)
    #: Trials that a sweep may run at once; sweeps without a cap are absent.
    caps: Mapping[str, int] = field(default_factory=dict)
    reservations: tuple[ReservationInfo, ...] = ()
    #: Why no job starts at all, in words; empty while jobs may.
    paused: str = ""
    #: Jobs that others were preempted for and that have not started yet: they are placed before all others.
    promised: dict[JobId, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._derive()
        for waiting in self.waiting.values():
            self._enter(waiting)
        for running in self.running.values():
            self._enter(running)

    def _derive(self) -> None:
        self.changes = 0  # of jobs
        self.classes = EquivalenceClasses()
        self.table = Table()
        #: Running jobs of each sweep.
        self.trials: dict[str, int] = {}
        #: Running jobs that share GPUs.
        self.sharing: dict[JobId, None] = {}
        #: Running jobs that are being preempted, for each preemptor.
        self.victims: dict[str, dict[JobId, None]] = {}
        self._capacities: dict[str, NodeCapacity] = {}

    def put(self, jobs: Iterable[Waiting | Running]) -> None:
        """Add jobs, or replace them; one that ran and now waits (or the other way round) moves."""
        for job in jobs:
            self.changes += 1
            self._leave(job.job, runs_on=isinstance(job, Running))
            if isinstance(job, Waiting):
                self.waiting[job.job] = job
            else:
                self.running[job.job] = job
                self.promised.pop(job.job, None)
            self._enter(job)

    def remove(self, job: JobId) -> None:
        """Forget a job that is over; an unknown one is no error."""
        self._leave(job, runs_on=False)
        if job in self.table.rows:
            self.changes += 1
            self.classes.drop(self.table.remove(job))
        self.promised.pop(job, None)

    def start(self, job: JobId, placements: tuple[Placement, ...], now_us: int) -> Running:
        """Turn a waiting job into one that has run at these placements since `now_us`, and return it."""
        waiting = self.waiting[job]
        common = {name: getattr(waiting, name) for name in _COMMON}
        left = waiting.remaining
        if left is not None:
            common["remaining"] = Estimate(
                p10_us=left.p10_us, p50_us=left.p50_us, p90_us=left.p90_us, source=left.source, as_of_us=now_us
            )
        ends_us = None if waiting.limit_us is None else now_us + waiting.limit_us
        running = Running(**common, placements=placements, since_us=now_us, ends_us=ends_us)
        self.put([running])
        return running

    def requeue(self, job: JobId, now_us: int, remaining: Estimate | None = None) -> Waiting:
        """Turn a running job back into a waiting one, and return it.

        It keeps its age, and the time that it ran is counted. `remaining` replaces its estimate if given. A job that
        has nothing to go on from needs the time that it ran once more.
        """
        running = self.running[job]
        common: dict[str, Any] = {name: getattr(running, name) for name in _COMMON}
        common["ran_us"] = running.ran_us + now_us - running.since_us
        left = running.remaining
        if remaining is not None:
            common["remaining"] = remaining
        elif left is not None and left.as_of_us is not None:
            gone = (running.since_us if running.starts_over else now_us) - left.as_of_us if left.source.own else 0
            points = {name: max(getattr(left, name) - gone, 0) for name in ("p10_us", "p50_us", "p90_us")}
            common["remaining"] = replace(left, as_of_us=None, **points)
        waiting = Waiting(**common)
        self.put([waiting])
        return waiting

    def copy(self) -> "SchedulerState":
        """Return a copy; changes of one do not touch the other."""
        other = SchedulerState.__new__(SchedulerState)
        other.__dict__.update(self.__dict__)
        other.waiting, other.running = self.waiting.copy(), self.running.copy()
        other.promised, other.trials = self.promised.copy(), self.trials.copy()
        other.sharing = self.sharing.copy()
        other.classes = self.classes.copy()
        other.table = self.table.copy()
        other.victims = {job: victims.copy() for job, victims in self.victims.items()}
        other._capacities = {node: capacity.copy() for node, capacity in self._capacities.items()}
        return other

    def capacities(self) -> dict[str, NodeCapacity]:
        """Return the free capacity of each node; callers must not change it."""
        capacities, infos = self._capacities, self.nodes
        if len(capacities) != len(infos):
            for node in capacities.keys() - infos.keys():
                del capacities[node]
        stale = [node for node, info in infos.items() if node not in capacities or capacities[node].info is not info]
        if stale:
            self._furnish(stale)
        return capacities

    def _furnish(self, nodes: list[str]) -> None:
        fresh = {node: NodeCapacity(self.nodes[node]) for node in nodes}
        for job in self.running.values():
            for placement in job.placements:
                if placement.node in fresh:
                    fresh[placement.node].hold(job.job, job.resources, placement.uuids)
        self._capacities.update(fresh)

    def _enter(self, job: Waiting | Running) -> None:
        class_id = self._enter_row(job)
        if isinstance(job, Waiting):
            return
        self.classes.count(class_id, job.since_us, 1)
        if job.resources.gpu_share:
            self.sharing[job.job] = None
        if job.group is not None:
            self.trials[job.group] = self.trials.get(job.group, 0) + 1
        if job.preempted_for is not None:
            self.victims.setdefault(job.preempted_for, {})[job.job] = None
        for placement in job.placements:
            if placement.node in self._capacities:
                self._capacities[placement.node].hold(job.job, job.resources, placement.uuids)

    def _enter_row(self, job: Waiting | Running) -> int:
        """Write the job into its row, a new one if it has none, and return its equivalence class's number."""
        table = self.table
        values = rows.waiting(job) if isinstance(job, Waiting) else rows.running(job)
        row = table.rows.get(job.job)
        if row is None:
            class_id = self.classes.take(rows.equivalence_class(job))
            table.add(job.job, class_id, values)
        else:
            class_id = self.classes.change(int(table.class_id[row]), rows.equivalence_class(job))
            table.change(row, class_id, values)
        return class_id

    def _leave(self, job: JobId, *, runs_on: bool) -> None:
        """Remove the job from everything but its row of the table."""
        self.waiting.pop(job, None)
        running = self.running.pop(job, None)
        if running is not None:
            self._vacate(running)
            if running.preempted_for is not None:
                self._drop_victim(job, running.preempted_for, gone=not runs_on)

    def _vacate(self, job: Running) -> None:
        self.classes.count(int(self.table.class_id[self.table.rows[job.job]]), job.since_us, -1)
        self.sharing.pop(job.job, None)
        if job.group is not None:
            self.trials[job.group] -= 1
            if not self.trials[job.group]:
                del self.trials[job.group]
        for placement in job.placements:
            if placement.node in self._capacities:
                self._capacities[placement.node].release(job.job, job.resources, placement.uuids)

    def _drop_victim(self, victim: JobId, preemptor: str, *, gone: bool) -> None:
        victims = self.victims[preemptor]
        del victims[victim]
        if not victims:
            del self.victims[preemptor]
        if gone and preemptor in self.waiting:
            self.promised[JobId(preemptor)] = None


_COMMON = tuple(JobInfo.__dataclass_fields__)
