"""Reasons for which a job waits, in words: the obstacles from `blockers`, with the names of jobs and users. Pure."""

from collections.abc import Callable, Iterable, Sequence

from service.scheduler.explain import job_reasons, node_reasons
from service.scheduler.explain.blockers import Blocker, Obstacle
from service.scheduler.explain.names import NAMED, Names
from service.scheduler.explain.reason_inputs import ReasonInputs
from service.scheduler.model.state import SchedulerState
from torchyard.api import Reason
from torchyard.ids import JobId

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


def mentioned(state: SchedulerState, job: JobId, found: Iterable[Blocker]) -> list[JobId]:
    """Return the jobs whose titles `reasons` needs."""
    jobs = [name for blocker in found for name in job_reasons.holders(state, job, blocker)[:NAMED]]
    return list(dict.fromkeys(jobs))


def reasons(
    state: SchedulerState, job: JobId, found: Sequence[Blocker], names: Names, now_us: int, starts_us: int | None = None
) -> list[Reason]:
    """Return the reasons for which the job does not start, the strongest first; never empty.

    `starts_us` is its expected start, in microseconds; None if there is no forecast.
    """
    given = ReasonInputs(state=state, waiting=state.waiting[job], names=names, now_us=now_us, starts_us=starts_us)
    told = [*(_TELL[blocker.obstacle](given, blocker) for blocker in found), *node_reasons.unstoppable(given, found)]
    return sorted(told, key=lambda reason: _STRENGTH.index(reason.code) if reason.code in _STRENGTH else -1)


_TELL: dict[Obstacle, Callable[[ReasonInputs, Blocker], Reason]] = {
    Obstacle.QUEUE_PAUSED: job_reasons.queue_paused,
    Obstacle.INELIGIBLE: job_reasons.ineligible,
    Obstacle.NO_NODES: job_reasons.no_nodes,
    Obstacle.NEVER_FITS: job_reasons.never_fits,
    Obstacle.QUOTA: job_reasons.quota,
    Obstacle.STARTING: job_reasons.starting,
    Obstacle.PREEMPTING: job_reasons.preempting,
    Obstacle.CLOSED: node_reasons.closed,
    Obstacle.NO_GPUS: node_reasons.no_gpus,
    Obstacle.OUTDATED: node_reasons.outdated,
    Obstacle.ACCOUNT: node_reasons.account,
    Obstacle.UNUSABLE: node_reasons.unusable,
    Obstacle.GPUS: node_reasons.gpus,
    Obstacle.CPUS: node_reasons.cpus,
    Obstacle.MEMORY: node_reasons.memory,
    Obstacle.KEPT: node_reasons.kept,
    Obstacle.RESERVED: node_reasons.reserved,
    Obstacle.BEHIND: node_reasons.behind,
    Obstacle.NODES: node_reasons.nodes,
}
