"""Reasons for which a job waits, in words: the obstacles from `blockers`, with the names of jobs and users. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from service.infra import times
from service.infra.times import minute
from service.scheduler.explain.availability import available_at, likely_end
from service.scheduler.explain.blockers import Blocker, Obstacle
from service.scheduler.explain.names import NAMED, Names
from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.model.nodes import ClosedReason, counted, wanted
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.quotas import QuotaKind, Reached
from service.scheduler.policy.reserved import takes_jobs_us
from torchyard.api import Reason
from torchyard.ids import JobId
from torchyard.quantities import format_size

_CLOSED = {
    ClosedReason.DRAINING: "is draining: it takes no new jobs until an administrator resumes it",
    ClosedReason.UNREACHABLE: "is not heard",
    ClosedReason.DISK_FLOOR: "is short of disk: nothing starts there until space is freed",
    ClosedReason.SERVICE_DISK: "gets no new jobs since the service's own disk is nearly full: free space on it",
}
_INELIGIBLE = {
    "held": "is held: release it to let it start",
    "saving": "the checkpoint of its last attempt is still being stored",
    "resting": "it failed again by no fault of its own: it rests, then is tried",
}
#: Codes of reasons about nodes, the strongest first; reasons about the job itself never appear beside them.
_STRENGTH = (
    "nodes",
    "gpus",
    "cpus",
    "memory",
    "behind",
    "reserved",
    "unusable",
    "outdated",
    "account",
    "disk-floor",
    "draining",
    "unreachable",
    "no-gpus",
    "unstoppable",
)
#: Advice on how to make a job preemptible.
_STOPPABLE = (
    "a script that calls `run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)` writes some by "
    "itself, and a job that may start over says `restartable: true` in its spec (`yard submit --set restartable=true`)"
)
_HOUR_US = 3_600_000_000


def mentioned(state: SchedulerState, job: JobId, found: Iterable[Blocker]) -> list[JobId]:
    """Return the jobs whose titles `reasons` needs."""
    jobs = [name for blocker in found for name in _holders(state, job, blocker)[:NAMED]]
    return list(dict.fromkeys(jobs))


def reasons(
    state: SchedulerState, job: JobId, found: Sequence[Blocker], names: Names, now_us: int, starts_us: int | None = None
) -> list[Reason]:
    """Return the reasons for which the job does not start, the strongest first; never empty.

    `starts_us` is its expected start, in microseconds; None if there is no forecast.
    """
    writer = _ReasonWriter(state, job, names, now_us, starts_us)
    told = [*(_TELL[blocker.obstacle](writer, blocker) for blocker in found), *writer.unstoppable(found)]
    return sorted(told, key=lambda reason: _STRENGTH.index(reason.code) if reason.code in _STRENGTH else -1)


def _holders(state: SchedulerState, job: JobId, blocker: Blocker) -> list[JobId]:
    """Return the jobs that a reason names."""
    if blocker.reached is None:
        return list(blocker.jobs)
    waiting, quota = state.waiting[job], blocker.reached.quota
    if quota is QuotaKind.SWEEP:
        return [each.job for each in state.running.values() if each.group == waiting.group]
    user = quota in {QuotaKind.USER_GPUS, QuotaKind.USER_WEEK}
    return [
        each.job
        for each in state.running.values()
        if each.gpus and (each.user == waiting.user if user else each.project == waiting.project)
    ]


class _ReasonWriter:
    """Writer of one job's reasons: one method for each kind of obstacle."""

    def __init__(self, state: SchedulerState, job: JobId, names: Names, now_us: int, starts_us: int | None) -> None:
        self.state, self.waiting, self.names = state, state.waiting[job], names
        self.now_us, self.starts_us = now_us, starts_us

    def queue_paused(self, blocker: Blocker) -> Reason:
        del blocker
        return Reason(code="queue-paused", message=self.state.paused)

    def ineligible(self, blocker: Blocker) -> Reason:
        match blocker.ineligible:
            case IneligibleReason.DEPENDENCY:
                return self._dependency()
            case IneligibleReason.SECRET:
                return Reason(code="secret", message=self.names.missing or "a secret that it names is gone")
            case IneligibleReason.PAUSED:
                why = f" ({self.names.paused})" if self.names.paused else ""
                return Reason(code="paused", message=f"its sweep is paused{why}: resume it to let its trials start")
        code = str(blocker.ineligible)
        return Reason(code=code, message=_INELIGIBLE[code])

    def _dependency(self) -> Reason:
        awaited = self.names.awaited
        words = [f"job {each.title.number} ({each.title.user}), {_IS.get(each.state, each.state)}" for each in awaited]
        more = f", and {len(words) - NAMED} more" if len(words) > NAMED else ""
        what = "; ".join(words[:NAMED]) + more or "other jobs"
        what_of = self.names.need if len(words) > 1 else self.names.need.partition(" of ")[0]
        need = f"the {what_of} of " if what_of else ""
        return Reason(code="dependency", message=f"waits for {need}{what}", jobs=[each.job for each in awaited])

    def no_nodes(self, blocker: Blocker) -> Reason:
        del blocker
        message = "no node has registered yet: start one with `yard up` or `yard worker`"
        return Reason(code="no-nodes", message=message)

    def never_fits(self, blocker: Blocker) -> Reason:
        return Reason(code="never-fits", message=blocker.lack or "no node could ever hold it")

    def starting(self, blocker: Blocker) -> Reason:
        del blocker
        return Reason(code="starting", message="starts with the next scheduling pass")

    def preempting(self, blocker: Blocker) -> Reason:
        jobs = list(blocker.jobs)
        stopping = [job for job in jobs if self.state.running[job].stops]
        saving = [job for job in jobs if job not in stopping]
        words = (
            [f"{self.names.of_jobs(stopping)} {'are' if len(stopping) > 1 else 'is'} being stopped"] if stopping else []
        )
        if saving:
            words.append(f"{self.names.of_jobs(saving)} {self._saving(saving)}")
        message = f"waits for a preemption: {'; '.join(words)}"
        return Reason(code="making-room", message=message, jobs=jobs, until=_moment(self.starts_us or math.inf))

    def _saving(self, jobs: Sequence[JobId]) -> str:
        due = _moment(max(self.state.running[job].due_us for job in jobs) or math.inf)
        by = f", due by {times.words(due)}," if due else ""
        return (
            f"save their work{by} and are then preempted"
            if len(jobs) > 1
            else f"saves its work{by} and is then preempted"
        )

    def quota(self, blocker: Blocker) -> Reason:
        assert blocker.reached is not None
        jobs = _holders(self.state, self.waiting.job, blocker)
        return Reason(
            code="sweep-cap" if blocker.reached.quota is QuotaKind.SWEEP else "quota",
            message=self._quota(blocker.reached, jobs),
            jobs=jobs[: 4 * NAMED],
            until=_moment(self._over(jobs)),
        )

    def _quota(self, reached: Reached, jobs: Sequence[JobId]) -> str:
        held = f", which {self.names.of_jobs(jobs)} {'use' if len(jobs) > 1 else 'uses'}" if jobs else ""
        whose = self.names.users.get(reached.whose, reached.whose)
        match reached.quota:
            case QuotaKind.SWEEP:
                do = "do" if len(jobs) > 1 else "does"
                return f"its sweep may run {reached.limit:.0f} at once, and {self.names.of_jobs(jobs)} {do}"
            case QuotaKind.USER_GPUS | QuotaKind.PROJECT_GPUS:
                of = f"user {whose}" if reached.quota is QuotaKind.USER_GPUS else f"project {whose}"
                need = f"; the job needs {self.waiting.gpus}" if self.waiting.gpus > 1 else ""
                return f"the quota of {of} is {self._devices(reached.limit)} at once{held}{need}"
            case QuotaKind.USER_WEEK | QuotaKind.PROJECT_WEEK:
                of = f"user {whose}" if reached.quota is QuotaKind.USER_WEEK else f"project {whose}"
                hours = f"{self._devices(1).removeprefix('1 ')}-hours"
                if not jobs:
                    return f"{of} has used up the {hours} that are theirs in seven days"
                left = max(reached.limit, 0) / _HOUR_US
                return f"of the {hours} that {of} has in seven days {left:.1f} are left{held}"

    def closed(self, blocker: Blocker) -> Reason:
        assert blocker.closed is not None
        until = self._open_at(blocker)
        if until is not None:
            message = f"node {blocker.node} takes no new jobs before its maintenance ends at {times.words(until)}"
            return Reason(code=blocker.closed.value, message=message, until=until)
        return Reason(code=blocker.closed.value, message=f"node {blocker.node} {_CLOSED[blocker.closed]}")

    def no_gpus(self, blocker: Blocker) -> Reason:
        return Reason(code="no-gpus", message=f"node {blocker.node} {blocker.lack}")

    def outdated(self, blocker: Blocker) -> Reason:
        what = f"needs a worker that knows shared GPUs: node {blocker.node} runs an older one; upgrade it"
        return Reason(code="outdated", message=what)

    def account(self, blocker: Blocker) -> Reason:
        node = blocker.node or ""
        known = self.names.accounts.get((self.waiting.job, node))
        return Reason(code="account", message=known or f"node {node} runs no jobs of this user")

    def _open_at(self, blocker: Blocker) -> datetime | None:
        """Return the end of the maintenance that a node drains for; None if it does not drain for one."""
        if blocker.closed is not ClosedReason.DRAINING:
            return None
        at_us = takes_jobs_us(self.state, self.state.nodes[blocker.node or ""])
        return _moment(max(at_us, self.now_us))

    def unusable(self, blocker: Blocker) -> Reason:
        info = self.state.nodes[blocker.node or ""]
        word = info.word.removesuffix("s")
        bad = [f"{word} {slot.index} cannot be used ({slot.unusable})" for slot in info.slots if slot.unusable]
        return Reason(code="unusable", message=f"node {blocker.node}: {', '.join(bad)}")

    def gpus(self, blocker: Blocker) -> Reason:
        resources, info = self.waiting.resources, self.state.nodes[blocker.node or ""]
        sort = wanted(resources)
        if resources.gpu_share:
            sort = f"with {format_size(resources.gpu_share)} of memory to share"
        word = info.word.removesuffix("s") if blocker.free == 1 else info.word
        what = " ".join(filter(None, (word, sort)))
        return self._short("gpus", blocker, f"{blocker.free} {what}", str(blocker.needed))

    def cpus(self, blocker: Blocker) -> Reason:
        return self._short("cpus", blocker, _count(blocker.free, "CPU core"), str(blocker.needed))

    def memory(self, blocker: Blocker) -> Reason:
        return self._short("memory", blocker, f"{format_size(blocker.free)} of memory", format_size(blocker.needed))

    def _short(self, code: str, blocker: Blocker, what: str, needed: str) -> Reason:
        jobs = list(blocker.jobs)
        until, how = self._expected(blocker)
        when = f"; enough is expected to be free at about {times.words(until)}{how}" if until else ""
        held = f"; the rest is held by {self.names.of_jobs(jobs)}{when}"
        if self.waiting.pinned and any(self.state.running[job].preemptible for job in jobs):
            held += "; this job is not preemptible itself (preemptible: false), so it gets no time slices"
        message = f"node {blocker.node} has {what} free and the job needs {needed}{held}"
        return Reason(code=code, message=message, jobs=jobs, until=until)

    def _expected(self, blocker: Blocker) -> tuple[datetime | None, str]:
        """Return when the node has the free capacity, and how if jobs are preempted for that.

        Enough of its jobs have ended by then, or are expected to be preempted for this one before they end.
        """
        at_us = available_at(self.state, self.waiting.resources, blocker.node or "", self.now_us)
        starts_us = self.starts_us
        if (
            starts_us is None
            or starts_us >= at_us
            or not any(self.state.running[job].preemptible for job in blocker.jobs)
        ):
            return _moment(at_us), ""
        return _moment(starts_us), ", when others are preempted for it"

    def unstoppable(self, found: Iterable[Blocker]) -> Iterable[Reason]:
        """Yield a reason for the jobs that hold resources it needs and have no checkpoint, so cannot be preempted."""
        short = [job for blocker in found if blocker.obstacle in _SHORT for job in blocker.jobs]
        running = [self.state.running[job] for job in dict.fromkeys(short) if job in self.state.running]
        saved = (each.preemptible or each.pinned or each.stops or each.saved_us is not None for each in running)
        jobs = [each.job for each, fixed in zip(running, saved, strict=True) if not fixed]
        if jobs:
            have, they = ("have", "they") if len(jobs) > 1 else ("has", "it")
            cannot = f"{have} written no checkpoint that was verified, so {they} cannot be stopped for others"
            message = f"{self.names.of_jobs(jobs)} {cannot}: {_STOPPABLE}"
            yield Reason(code="unstoppable", message=message, jobs=jobs)

    def kept(self, blocker: Blocker) -> Reason:
        return self._behind(blocker, f"what is free on node {blocker.node} is kept for")

    def behind(self, blocker: Blocker) -> Reason:
        where = f"what is free on node {blocker.node}" if blocker.node else "what is free"
        return self._behind(blocker, f"{where} goes to")

    def _behind(self, blocker: Blocker, words: str) -> Reason:
        message = (
            f"{words} {self.names.of_jobs(blocker.jobs)}, which {'come' if len(blocker.jobs) > 1 else 'comes'} first"
        )
        return Reason(code="behind", message=message, jobs=list(blocker.jobs))

    def reserved(self, blocker: Blocker) -> Reason:
        found = next((each for each in self.state.reservations if each.id == blocker.reservation), None)
        if found is None:
            return Reason(code="reserved", message=f"what is free on node {blocker.node} is reserved")
        start, end = (times.words(minute(at_us)) for at_us in (found.starts_us, found.ends_us))
        what = "out of use for maintenance" if found.maintenance else "reserved"
        name = found.name
        if found.gpus is not None:
            what, name = "reserved in part", f"{name}, {self._devices(found.gpus)}"
        message = f"node {blocker.node} is {what} from {start} to {end} ({name})"
        return Reason(code="reserved", message=message, until=minute(found.ends_us))

    def nodes(self, blocker: Blocker) -> Reason:
        message = f"needs {blocker.needed} nodes at the same time, and {blocker.free or 'none'} has enough free now"
        return Reason(code="nodes", message=message)

    def _devices(self, number: float) -> str:
        return counted(number, self.state.nodes.values())

    def _over(self, jobs: Iterable[JobId]) -> float:
        """Return the median of the first of these jobs' ends, in microseconds; infinite if nothing tells."""
        return min((likely_end(self.state.running[job], self.now_us) for job in jobs), default=math.inf)


def _moment(at_us: float) -> datetime | None:
    return None if at_us == math.inf else minute(at_us)


def _count(number: float, word: str) -> str:
    return f"{number:.0f} {word}{'' if number == 1 else 's'}"


_SHORT = frozenset({Obstacle.GPUS, Obstacle.CPUS, Obstacle.MEMORY})
_IS = {"queued": "which waits", "running": "which runs", "failed": "which failed", "cancelled": "which was cancelled"}
_TELL: dict[Obstacle, Callable[[_ReasonWriter, Blocker], Reason]] = {
    Obstacle.QUEUE_PAUSED: _ReasonWriter.queue_paused,
    Obstacle.INELIGIBLE: _ReasonWriter.ineligible,
    Obstacle.NO_NODES: _ReasonWriter.no_nodes,
    Obstacle.NEVER_FITS: _ReasonWriter.never_fits,
    Obstacle.QUOTA: _ReasonWriter.quota,
    Obstacle.STARTING: _ReasonWriter.starting,
    Obstacle.PREEMPTING: _ReasonWriter.preempting,
    Obstacle.CLOSED: _ReasonWriter.closed,
    Obstacle.NO_GPUS: _ReasonWriter.no_gpus,
    Obstacle.OUTDATED: _ReasonWriter.outdated,
    Obstacle.ACCOUNT: _ReasonWriter.account,
    Obstacle.UNUSABLE: _ReasonWriter.unusable,
    Obstacle.GPUS: _ReasonWriter.gpus,
    Obstacle.CPUS: _ReasonWriter.cpus,
    Obstacle.MEMORY: _ReasonWriter.memory,
    Obstacle.KEPT: _ReasonWriter.kept,
    Obstacle.RESERVED: _ReasonWriter.reserved,
    Obstacle.BEHIND: _ReasonWriter.behind,
    Obstacle.NODES: _ReasonWriter.nodes,
}
