"""Words for idle devices: for whom, until when, and the line that would let others be stopped. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from service.infra import times
from service.scheduler.explain.idle import NodeIdleDevices
from service.scheduler.explain.lack import counted
from service.scheduler.explain.names import NAMED, Names
from service.scheduler.explain.node_reasons import closed_words, reservation_words, stoppable
from service.scheduler.explain.reason_inputs import moment
from service.scheduler.model.state import SchedulerState
from torchyard.api import IdleReason
from torchyard.ids import JobId


def mentioned(found: Iterable[NodeIdleDevices]) -> list[JobId]:
    """Return the jobs whose titles `tell` needs."""
    jobs = (job for each in found for job in (each.job, *each.unstoppable[:NAMED]) if job is not None)
    return list(dict.fromkeys(jobs))


class IdleWords(NamedTuple):
    """Reason for which devices are idle, in words that follow "idle: ", and what it is made of."""

    message: str
    params: dict[str, Any]


_Tell = Callable[[SchedulerState, Names, NodeIdleDevices], IdleWords]


def tell(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> IdleWords:
    """Return why the devices are idle, with the line that would change it."""
    message, params = _TELL[idle.reason](state, names, idle)
    fixed = list(_unstoppable(state, names, idle))
    params = {**params, "unstoppable": [each.params for each in fixed]} if fixed else params
    return IdleWords("; ".join([message, *(each.message for each in fixed)]), params)


def _needs(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> IdleWords:
    """Return the job for which they are idle, with what it needs."""
    assert idle.job is not None
    waiting = state.waiting[idle.job]
    where = f" on each of {waiting.nodes} nodes" if waiting.nodes > 1 else ""
    needed, infos = waiting.resources.gpus, state.nodes.values()
    message = f"{names.of_jobs([idle.job])}, which needs {counted(needed, infos)}{where}"
    units = sorted({info.unit for info in infos})
    return IdleWords(message, {"needed": needed, "units": units, "nodes": waiting.nodes, **names.params([idle.job])})


def _until(idle: NodeIdleDevices, form: str) -> IdleWords:
    at = moment(idle.until_us)
    return IdleWords(f"{form} {times.words(at)}", {"until": times.words(at)}) if at else IdleWords("", {})


def _queue_paused(state: SchedulerState, names: Names, _idle: NodeIdleDevices) -> IdleWords:
    return IdleWords(state.paused, dict(names.pause))


def _closed(state: SchedulerState, _names: Names, idle: NodeIdleDevices) -> IdleWords:
    info = state.nodes[idle.node]
    assert info.closed is not None
    until = _until(idle, ", its maintenance ends at")
    return IdleWords(f"its node {closed_words(info.closed)}{until.message}", {"closed": info.closed, **until.params})


def _for_job(form: str) -> _Tell:
    def tell_of(_state: SchedulerState, names: Names, idle: NodeIdleDevices) -> IdleWords:
        jobs = [idle.job] if idle.job else []
        return IdleWords(f"{names.of_jobs(jobs)} {form}", names.params(jobs))

    return tell_of


def _kept(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> IdleWords:
    needs, until = _needs(state, names, idle), _until(idle, " and can start at about")
    return IdleWords(f"kept for {needs.message}{until.message}", needs.params | until.params)


def _reserved(state: SchedulerState, _names: Names, idle: NodeIdleDevices) -> IdleWords:
    found = next((each for each in state.reservations if each.id == idle.reservation), None)
    if found is None:
        return IdleWords("reserved", {})
    # It may not have begun yet: then the first job in the queue would not be over by then.
    what, start, until = reservation_words(found)
    params = {"maintenance": found.maintenance, "name": found.name, "start": start, "until": until}
    return IdleWords(f"{what} from {start} to {until} ({found.name})", params)


def _too_few(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> IdleWords:
    needs, until = _needs(state, names, idle), _until(idle, "; enough is expected to be free at about")
    return IdleWords(f"too few for {needs.message}{until.message}", needs.params | until.params)


def _plain(text: str) -> _Tell:
    return lambda _state, _names, _idle: IdleWords(text, {})


_TELL: dict[IdleReason, _Tell] = {
    IdleReason.QUEUE_PAUSED: _queue_paused,
    IdleReason.CLOSED: _closed,
    IdleReason.STARTING: _for_job("starts here with the next scheduling pass"),
    IdleReason.PREEMPTING: _for_job("starts here once others have been stopped for it"),
    IdleReason.KEPT: _kept,
    IdleReason.RESERVED: _reserved,
    IdleReason.TOO_FEW: _too_few,
    IdleReason.QUOTA: _plain("the jobs that wait and could use it are over their quotas"),
    IdleReason.INELIGIBLE: _plain("the jobs that wait are held, or wait for something else than devices"),
    IdleReason.UNSUITABLE: _plain("no job that waits could use it"),
    IdleReason.NOBODY: _plain("no job waits for it"),
    IdleReason.NEXT: _for_job("fits here and starts with one of the next passes"),
}


def _unstoppable(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> Iterable[IdleWords]:
    """Yield who is in the way and cannot be stopped, with the line that would change it."""
    for pinned in (True, False):
        jobs = [job for job in idle.unstoppable if state.running[job].pinned == pinned]
        if not jobs:
            continue
        say = "say" if len(jobs) > 1 else "says"
        have = "have" if len(jobs) > 1 else "has"
        why = f"{say} `preemptible: false`" if pinned else f"{have} written no checkpoint that was verified"
        unpinned = "without that line a job can be stopped once it has a checkpoint"
        line = unpinned if pinned else stoppable(state, jobs)
        they = "they" if len(jobs) > 1 else "it"
        message = f"{names.of_jobs(jobs)} cannot be stopped, since {they} {why}: {line}"
        yield IdleWords(message, {"pinned": pinned, **names.params(jobs)})
