"""Words for idle devices: for whom, until when, and the line that would let others be stopped. Pure."""

from collections.abc import Callable, Iterable

from service.infra import times
from service.scheduler.explain.idle import IdleReason, NodeIdleDevices
from service.scheduler.explain.lack import counted
from service.scheduler.explain.names import NAMED, Names
from service.scheduler.explain.node_reasons import closed_words, stoppable
from service.scheduler.explain.reason_inputs import moment
from service.scheduler.model.state import SchedulerState
from torchyard.ids import JobId


def mentioned(found: Iterable[NodeIdleDevices]) -> list[JobId]:
    """Return the jobs whose titles `words` needs."""
    jobs = (job for each in found for job in (each.job, *each.unstoppable[:NAMED]) if job is not None)
    return list(dict.fromkeys(jobs))


def words(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    """Return why the devices are idle, in words that follow "idle: ", with the line that would change it."""
    return "; ".join([_TELL[idle.reason](state, names, idle), *_unstoppable(state, names, idle)])


def _needs(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    """Return the job for which they are idle, with what it needs."""
    assert idle.job is not None
    waiting = state.waiting[idle.job]
    where = f" on each of {waiting.nodes} nodes" if waiting.nodes > 1 else ""
    return f"{names.of_jobs([idle.job])}, which needs {counted(waiting.resources.gpus, state.nodes.values())}{where}"


def _until(idle: NodeIdleDevices, form: str) -> str:
    at = moment(idle.until_us)
    return f"{form} {times.words(at)}" if at else ""


def _queue_paused(state: SchedulerState, _names: Names, _idle: NodeIdleDevices) -> str:
    return state.paused


def _closed(state: SchedulerState, _names: Names, idle: NodeIdleDevices) -> str:
    info = state.nodes[idle.node]
    assert info.closed is not None
    return f"its node {closed_words(info.closed)}{_until(idle, ', its maintenance ends at')}"


def _starting(_state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    return f"{names.of_jobs([idle.job] if idle.job else [])} starts here with the next scheduling pass"


def _preempting(_state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    return f"{names.of_jobs([idle.job] if idle.job else [])} starts here once others have been stopped for it"


def _kept(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    return f"kept for {_needs(state, names, idle)}{_until(idle, ' and can start at about')}"


def _reserved(state: SchedulerState, _names: Names, idle: NodeIdleDevices) -> str:
    found = next((each for each in state.reservations if each.id == idle.reservation), None)
    what = "out of use for maintenance" if found is not None and found.maintenance else "reserved"
    name = f" ({found.name})" if found is not None else ""
    return f"{what}{_until(idle, ' until')}{name}"


def _too_few(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    return f"too few for {_needs(state, names, idle)}{_until(idle, '; enough is expected to be free at about')}"


def _plain(text: str) -> Callable[[SchedulerState, Names, NodeIdleDevices], str]:
    return lambda _state, _names, _idle: text


def _next(_state: SchedulerState, names: Names, idle: NodeIdleDevices) -> str:
    return f"{names.of_jobs([idle.job] if idle.job else [])} fits here and starts with one of the next passes"


_TELL: dict[IdleReason, Callable[[SchedulerState, Names, NodeIdleDevices], str]] = {
    IdleReason.QUEUE_PAUSED: _queue_paused,
    IdleReason.CLOSED: _closed,
    IdleReason.STARTING: _starting,
    IdleReason.PREEMPTING: _preempting,
    IdleReason.KEPT: _kept,
    IdleReason.RESERVED: _reserved,
    IdleReason.TOO_FEW: _too_few,
    IdleReason.QUOTA: _plain("the jobs that wait and could use it are over their quotas"),
    IdleReason.INELIGIBLE: _plain("the jobs that wait are held, or wait for something else than devices"),
    IdleReason.UNSUITABLE: _plain("no job that waits could use it"),
    IdleReason.NOBODY: _plain("no job waits for it"),
    IdleReason.NEXT: _next,
}


def _unstoppable(state: SchedulerState, names: Names, idle: NodeIdleDevices) -> Iterable[str]:
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
        yield f"{names.of_jobs(jobs)} cannot be stopped, since {'they' if len(jobs) > 1 else 'it'} {why}: {line}"
