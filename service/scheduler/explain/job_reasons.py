"""Reasons that lie in the job itself: its own state, its quotas, its preemption; a function for each obstacle. Pure."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from service.infra import times
from service.scheduler.explain.availability import likely_end
from service.scheduler.explain.blockers import Blocker
from service.scheduler.explain.names import NAMED
from service.scheduler.explain.reason_inputs import ReasonInputs, moment
from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.quotas import QuotaKind, Reached
from torchyard.api import Reason
from torchyard.ids import JobId

_INELIGIBLE = {
    "held": "is held: release it to let it start",
    "saving": "the checkpoint of its last attempt is still being stored",
    "resting": "it failed again by no fault of its own: it rests, then is tried",
}
_IS = {"queued": "which waits", "running": "which runs", "failed": "which failed", "cancelled": "which was cancelled"}
_HOUR_US = 3_600_000_000


def holders(state: SchedulerState, job: JobId, blocker: Blocker) -> list[JobId]:
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


def queue_paused(given: ReasonInputs, _blocker: Blocker) -> Reason:
    return Reason(code="queue-paused", message=given.state.paused, params=dict(given.names.pause))


def ineligible(given: ReasonInputs, blocker: Blocker) -> Reason:
    match blocker.ineligible:
        case IneligibleReason.DEPENDENCY:
            return _dependency(given)
        case IneligibleReason.SECRET:
            return given.names.missing or Reason(code="secret", message="a secret that it names is gone")
        case IneligibleReason.PAUSED:
            why = f" ({given.names.paused})" if given.names.paused else ""
            message = f"its sweep is paused{why}: resume it to let its trials start"
            return Reason(code="paused", message=message, params={"said": given.names.paused})
    code = str(blocker.ineligible)
    return Reason(code=code, message=_INELIGIBLE[code])


def _dependency(given: ReasonInputs) -> Reason:
    awaited = given.names.awaited
    words = [f"job {each.title.number} ({each.title.user}), {_IS.get(each.state, each.state)}" for each in awaited]
    more = f", and {len(words) - NAMED} more" if len(words) > NAMED else ""
    what = "; ".join(words[:NAMED]) + more or "other jobs"
    what_of = given.names.need if len(words) > 1 else given.names.need.partition(" of ")[0]
    need = f"the {what_of} of " if what_of else ""
    named = [{"number": each.title.number, "user": each.title.user, "state": each.state} for each in awaited[:NAMED]]
    when, _, of_them = given.names.need.partition(" of ")
    params = {"jobs": named, "more": max(len(awaited) - NAMED, 0), "when": when, "need": of_them}
    jobs = [each.job for each in awaited]
    return Reason(code="dependency", message=f"waits for {need}{what}", jobs=jobs, params=params)


def no_nodes(_given: ReasonInputs, _blocker: Blocker) -> Reason:
    message = "no node has registered yet: an administrator starts one with `yard up` or `yard worker`"
    return Reason(code="no-nodes", message=message)


def never_fits(_given: ReasonInputs, blocker: Blocker) -> Reason:
    assert blocker.lack is not None
    return Reason(code="never-fits", message=blocker.lack.words, params=dict(blocker.lack.params))


def starting(_given: ReasonInputs, _blocker: Blocker) -> Reason:
    return Reason(code="starting", message="starts with the next scheduling pass")


def preempting(given: ReasonInputs, blocker: Blocker) -> Reason:
    jobs = list(blocker.jobs)
    stopping = [job for job in jobs if given.state.running[job].stops]
    losing = [job for job in jobs if job not in stopping and given.state.running[job].starts_over]
    saving = [job for job in jobs if job not in (*stopping, *losing)]
    words = (
        [f"{given.names.of_jobs(stopping)} {'are' if len(stopping) > 1 else 'is'} being stopped"] if stopping else []
    )
    if losing:
        words.append(f"{given.names.of_jobs(losing)} {'go' if len(losing) > 1 else 'goes'} back to start over")
    if saving:
        words.append(f"{given.names.of_jobs(saving)} {_saving(given, saving)}")
    message = f"waits for a preemption: {'; '.join(words)}"
    due = _due(given, saving)
    params = {
        "stopping": given.names.params(stopping),
        "starting_over": given.names.params(losing),
        "saving": given.names.params(saving),
        "due": times.words(due) if due else "",
    }
    until = moment(given.starts_us or math.inf)
    return Reason(code="making-room", message=message, jobs=jobs, until=until, params=params)


def _saving(given: ReasonInputs, jobs: Sequence[JobId]) -> str:
    due = _due(given, jobs)
    by = f", due by {times.words(due)}," if due else ""
    return (
        f"save their work{by} and are then preempted" if len(jobs) > 1 else f"saves its work{by} and is then preempted"
    )


def _due(given: ReasonInputs, jobs: Sequence[JobId]) -> datetime | None:
    """Return when the last of these jobs must have saved its work; None where that is not known."""
    return moment(max((given.state.running[job].due_us for job in jobs), default=0) or math.inf)


def quota(given: ReasonInputs, blocker: Blocker) -> Reason:
    assert blocker.reached is not None
    jobs = holders(given.state, given.waiting.job, blocker)
    return Reason(
        code="sweep-cap" if blocker.reached.quota is QuotaKind.SWEEP else "quota",
        message=_quota(given, blocker.reached, jobs),
        jobs=jobs[: 4 * NAMED],
        until=moment(_over(given, jobs)),
        params=_quota_params(given, blocker.reached, jobs),
    )


def _quota_params(given: ReasonInputs, reached: Reached, jobs: Sequence[JobId]) -> dict[str, Any]:
    weekly = reached.quota in {QuotaKind.USER_WEEK, QuotaKind.PROJECT_WEEK}
    return {
        "kind": reached.quota.value,
        "whose": given.names.users.get(reached.whose, reached.whose),
        "limit": round(max(reached.limit, 0) / _HOUR_US, 1) if weekly else round(reached.limit),
        "needed": given.waiting.gpus,
        **given.names.params(jobs),
    }


def _quota(given: ReasonInputs, reached: Reached, jobs: Sequence[JobId]) -> str:
    held = f", which {given.names.of_jobs(jobs)} {'use' if len(jobs) > 1 else 'uses'}" if jobs else ""
    whose = given.names.users.get(reached.whose, reached.whose)
    match reached.quota:
        case QuotaKind.SWEEP:
            do = "do" if len(jobs) > 1 else "does"
            return f"its sweep may run {reached.limit:.0f} at once, and {given.names.of_jobs(jobs)} {do}"
        case QuotaKind.USER_GPUS | QuotaKind.PROJECT_GPUS:
            of = f"user {whose}" if reached.quota is QuotaKind.USER_GPUS else f"project {whose}"
            need = f"; the job needs {given.waiting.gpus}" if given.waiting.gpus > 1 else ""
            return f"the quota of {of} is {given.devices(reached.limit)} at once{held}{need}"
        case QuotaKind.USER_WEEK | QuotaKind.PROJECT_WEEK:
            of = f"user {whose}" if reached.quota is QuotaKind.USER_WEEK else f"project {whose}"
            hours = f"{given.devices(1).removeprefix('1 ')}-hours"
            if not jobs:
                return f"{of} has used up the {hours} that are theirs in seven days"
            left = max(reached.limit, 0) / _HOUR_US
            return f"of the {hours} that {of} has in seven days {left:.1f} are left{held}"


def _over(given: ReasonInputs, jobs: Iterable[JobId]) -> float:
    """Return the median of the first of these jobs' ends, in microseconds; infinite if nothing tells."""
    return min((likely_end(given.state.running[job], given.now_us) for job in jobs), default=math.inf)
