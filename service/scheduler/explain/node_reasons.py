"""Reasons that lie in the nodes: what they lack, and who gets what is free; a function for each obstacle. Pure."""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from service.infra import times
from service.infra.times import minute
from service.scheduler.explain.availability import available_at
from service.scheduler.explain.blockers import Blocker, Obstacle
from service.scheduler.explain.lack import reservable, wanted, wanted_params
from service.scheduler.explain.reason_inputs import ReasonInputs, moment
from service.scheduler.model.jobs import ReservationInfo, Running
from service.scheduler.model.nodes import ClosedReason, NodeInfo, Slot
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.maintenance import takes_jobs_us
from torchyard.api import Reason
from torchyard.ids import JobId
from torchyard.quantities import format_size

_CLOSED = {
    ClosedReason.DRAINING: "is draining: it takes no new jobs until an administrator resumes it",
    ClosedReason.UNREACHABLE: "is not heard",
    ClosedReason.DISK_FLOOR: "is short of disk: nothing starts there until space is freed",
    ClosedReason.SERVICE_DISK: "gets no new jobs since the service's own disk is nearly full, until an administrator "
    "frees space on it",
}
_SCRIPT_SAVES = (
    "a script that calls `run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)` writes some by "
    "itself"
)
_RECIPE_SAVES = "the built-in trainer writes one by itself, and at once for `yard checkpoint JOB`"
_STARTS_OVER = "a job that may start over says `restartable: true` in its spec (`yard submit --set restartable=true`)"
_SHORT = frozenset({Obstacle.GPUS, Obstacle.CPUS, Obstacle.MEMORY})


def closed_words(reason: ClosedReason) -> str:
    """Return why a node takes no jobs, in words that follow its name."""
    return _CLOSED[reason]


def stoppable(state: SchedulerState, jobs: Iterable[JobId]) -> str:
    """Return advice on how running jobs become preemptible."""
    found = [state.running[job] for job in jobs]
    recipes = {job.recipe for job in found}
    saves = "; ".join(words for recipe, words in ((False, _SCRIPT_SAVES), (True, _RECIPE_SAVES)) if recipe in recipes)
    return f"{saves}, and {_STARTS_OVER}" if gain_restarts(found) else saves


def gain_restarts(jobs: Iterable[Running]) -> bool:
    """Return whether `restartable: true` would let any of the jobs start over: most may anyway, as `auto` has it."""
    return not all(job.restarts_allowed for job in jobs)


def closed(given: ReasonInputs, blocker: Blocker) -> Reason:
    assert blocker.closed is not None
    opens_us = _opens_us(given, blocker)
    if opens_us != math.inf:
        end = times.words(times.moment(int(opens_us)))
        message = f"node {blocker.node} takes no new jobs before its maintenance ends at {end}"
        params = {"node": blocker.node, "until": end}
        return Reason(code=blocker.closed.value, message=message, until=minute(opens_us), params=params)
    info = given.state.nodes[blocker.node or ""]
    if info.low_disk is not None:
        free, floor = info.low_disk
        message = f"node {info.name} has {free} of disk free: no job starts there below {floor}, so free some"
        return Reason(code="disk-floor", message=message, params={"node": info.name, "free": free, "least": floor})
    said = info.drain_message if blocker.closed is ClosedReason.DRAINING else None
    why = f" ({said})" if said else ""
    message = f"node {blocker.node} {closed_words(blocker.closed)}{why}"
    return Reason(code=blocker.closed.value, message=message, params={"node": blocker.node, "said": said or ""})


def no_gpus(_given: ReasonInputs, blocker: Blocker) -> Reason:
    assert blocker.lack is not None
    return Reason(code="no-gpus", message=f"node {blocker.node} {blocker.lack.words}", params={"node": blocker.node})


def outdated(_given: ReasonInputs, blocker: Blocker) -> Reason:
    what = f"needs a worker that knows {blocker.unknown}: node {blocker.node} runs an older one"
    message = f"{what}, until an administrator upgrades it"
    return Reason(code="outdated", message=message, params={"node": blocker.node, "unknown": blocker.unknown})


def account(given: ReasonInputs, blocker: Blocker) -> Reason:
    node = blocker.node or ""
    known = given.names.accounts.get((given.waiting.job, node))
    return known or Reason(code="account", message=f"node {node} runs no jobs of this user", params={"node": node})


def _opens_us(given: ReasonInputs, blocker: Blocker) -> float:
    """Return the end of the maintenance that a node drains for; infinite if it does not drain for one."""
    if blocker.closed is not ClosedReason.DRAINING:
        return math.inf
    return max(takes_jobs_us(given.state, given.state.nodes[blocker.node or ""]), given.now_us)


def unusable(given: ReasonInputs, blocker: Blocker) -> Reason:
    info = given.state.nodes[blocker.node or ""]
    params = {"node": blocker.node, "unit": info.unit, "unusable": _unusable_slots(info)}
    return Reason(code="unusable", message=f"node {blocker.node}: {_unusable(info)}", params=params)


def _unusable_slots(info: NodeInfo) -> list[dict[str, Any]]:
    return [{"index": slot.index, "said": slot.unusable, **_found(slot)} for slot in info.slots if slot.unusable]


def _found(slot: Slot) -> dict[str, Any]:
    return {} if slot.finding is None else {"finding": slot.finding}


def _unusable(info: NodeInfo) -> str:
    word = info.word.removesuffix("s")
    return ", ".join(f"{word} {slot.index} cannot be used ({slot.unusable})" for slot in info.slots if slot.unusable)


def gpus(given: ReasonInputs, blocker: Blocker) -> Reason:
    resources, info = given.waiting.resources, given.state.nodes[blocker.node or ""]
    sort = wanted(resources)
    if resources.gpu_share:
        sort = f"with {format_size(resources.gpu_share)} of memory to share"
    word = info.word.removesuffix("s") if blocker.free == 1 else info.word
    what = " ".join(filter(None, (word, sort)))
    found = _short(given, "gpus", blocker, f"{blocker.free} {what}", str(blocker.needed))
    bad = _unusable(info)
    message = f"{found.message}; {bad}" if bad else found.message
    params = {"unit": info.unit, "unusable": _unusable_slots(info), **wanted_params(resources)}
    return found.model_copy(update={"message": message, "params": {**found.params, **params}})


def cpus(given: ReasonInputs, blocker: Blocker) -> Reason:
    return _short(given, "cpus", blocker, _count(blocker.free, "CPU core"), str(blocker.needed))


def memory(given: ReasonInputs, blocker: Blocker) -> Reason:
    return _short(given, "memory", blocker, f"{format_size(blocker.free)} of memory", format_size(blocker.needed))


def _short(given: ReasonInputs, code: str, blocker: Blocker, what: str, needed: str) -> Reason:
    jobs = list(blocker.jobs)
    until, how = _expected(given, blocker)
    when = f"; enough is expected to be free at about {times.words(until)}{how}" if until else ""
    held = f"; the rest is held by {given.names.of_jobs(jobs)}{when}"
    no_slices = given.waiting.pinned and any(given.state.running[job].preemptible for job in jobs)
    if no_slices:
        held += "; this job is not preemptible itself (preemptible: false), so it gets no time slices"
    message = f"node {blocker.node} has {what} free and the job needs {needed}{held}"
    sizes = code == "memory"
    params = {
        "node": blocker.node,
        "free": format_size(blocker.free) if sizes else blocker.free,
        "needed": format_size(blocker.needed) if sizes else blocker.needed,
        "preempted": bool(how),
        "pinned": no_slices,
        **given.names.params(jobs),
    }
    return Reason(code=code, message=message, jobs=jobs, until=until, params=params)


def _expected(given: ReasonInputs, blocker: Blocker) -> tuple[datetime | None, str]:
    """Return when the node has the free capacity, and how if jobs are preempted for that.

    Enough of its jobs have ended by then, or are expected to be preempted for this one before they end.
    """
    at_us = available_at(given.state, given.waiting.resources, blocker.node or "", given.now_us)
    starts_us = given.starts_us
    if starts_us is None or starts_us >= at_us or not any(given.state.running[job].preemptible for job in blocker.jobs):
        return moment(at_us), ""
    return moment(starts_us), ", when others are preempted for it"


def unstoppable(given: ReasonInputs, found: Iterable[Blocker]) -> Iterable[Reason]:
    """Yield a reason for the jobs that hold resources it needs and have no checkpoint, so cannot be preempted."""
    short = [job for blocker in found if blocker.obstacle in _SHORT for job in blocker.jobs]
    running = [given.state.running[job] for job in dict.fromkeys(short) if job in given.state.running]
    saved = (each.preemptible or each.pinned or each.stops or each.saved_us is not None for each in running)
    stuck = [each for each, fixed in zip(running, saved, strict=True) if not fixed]
    jobs = [each.job for each in stuck]
    if jobs:
        have, they = ("have", "they") if len(jobs) > 1 else ("has", "it")
        cannot = f"{have} written no checkpoint that was verified, so {they} cannot be stopped for others"
        message = f"{given.names.of_jobs(jobs)} {cannot}: {stoppable(given.state, jobs)}"
        recipes = [each.recipe for each in stuck]
        params = {"recipes": any(recipes), "scripts": not all(recipes), "restartable": gain_restarts(stuck)}
        params |= given.names.params(jobs)
        yield Reason(code="unstoppable", message=message, jobs=jobs, params=params)


def kept(given: ReasonInputs, blocker: Blocker) -> Reason:
    found = _behind(given, blocker, f"what is free on node {blocker.node} is kept for")
    until = moment(blocker.until_us) if blocker.until_us > given.now_us else None
    if until is None:
        return found
    sooner = f"and can start at about {times.words(until)}: a job whose time_limit ends before that may start there"
    params = {**found.params, "until": times.words(until)}
    return found.model_copy(update={"message": f"{found.message}, {sooner}", "until": until, "params": params})


def behind(given: ReasonInputs, blocker: Blocker) -> Reason:
    where = f"what is free on node {blocker.node}" if blocker.node else "what is free"
    return _behind(given, blocker, f"{where} goes to")


def _behind(given: ReasonInputs, blocker: Blocker, words: str) -> Reason:
    message = f"{words} {given.names.of_jobs(blocker.jobs)}, which {'come' if len(blocker.jobs) > 1 else 'comes'} first"
    params = {"node": blocker.node or "", "kept": blocker.obstacle is Obstacle.KEPT, **given.names.params(blocker.jobs)}
    return Reason(code="behind", message=message, jobs=list(blocker.jobs), params=params)


def reservation_words(found: ReservationInfo) -> tuple[str, str, str]:
    """Return what a reservation does with its devices, its begin and its end, in words."""
    what = "out of use for maintenance" if found.maintenance else "reserved"
    return what, times.words(times.moment(found.starts_us)), times.words(times.moment(found.ends_us))


def reserved(given: ReasonInputs, blocker: Blocker) -> Reason:
    found = next((each for each in given.state.reservations if each.id == blocker.reservation), None)
    if found is None:
        message = f"what is free on node {blocker.node} is reserved"
        return Reason(code="reserved", message=message, params={"node": blocker.node})
    what, start, end = reservation_words(found)
    name = found.name
    if found.gpus is not None:
        what, name = "reserved in part", f"{name}, {reservable(found.gpus, given.state.nodes.values())}"
    message = f"node {blocker.node} is {what} from {start} to {end} ({name})"
    params: dict[str, Any] = {"node": blocker.node, "start": start, "end": end, "name": found.name}
    params |= {"maintenance": found.maintenance, "part": found.gpus}
    return Reason(code="reserved", message=message, until=minute(found.ends_us), params=params)


def nodes(_given: ReasonInputs, blocker: Blocker) -> Reason:
    found = f"{blocker.free or 'none'} {'have' if blocker.free > 1 else 'has'}"
    message = f"needs {blocker.needed} nodes at the same time, and {found} enough free now"
    return Reason(code="nodes", message=message, params={"needed": blocker.needed, "free": blocker.free})


def _count(number: float, word: str) -> str:
    return f"{number:.0f} {word}{'' if number == 1 else 's'}"
