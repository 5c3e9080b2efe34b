"""Expected end of running jobs, and when a node has the free capacity for another. Pure."""

from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import ResourceRequest
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import choose


def available_at(state: SchedulerState, resources: ResourceRequest, node: str, now_us: int) -> float:
    """Return when the node has the free capacity for a job if those that run there end at their median estimates.

    In microseconds; infinite if nothing tells.
    """
    trial = state.capacities()[node].copy()
    at_us: float = now_us
    running = [state.running[job] for job in trial.jobs]
    for job in sorted(running, key=lambda job: (likely_end(job, now_us), job.number)):
        if trial.has_cpus_and_memory(resources) and choose(trial, resources) is not None:
            break
        at_us = likely_end(job, now_us)
        for placement in job.placements:
            if placement.node == node:
                trial.release(job.job, job.resources, placement.uuids)
    return at_us


def likely_end(job: Running, now_us: int) -> float:
    """Return the median of a running job's end, in microseconds; infinite without an estimate and a limit."""
    return end_us(job, "p50_us", now_us, earliest_us=now_us)
