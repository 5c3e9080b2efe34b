"""When running jobs are likely to be over, and a node has room for another. Pure."""

from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import ResourceRequest
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.ends import end_us
from service.scheduler.policy.placement import choose


def available_at(state: SchedulerState, resources: ResourceRequest, node: str, now_us: int) -> float:
    """When the node has room for the job if those that run there end as half of their like do."""
    trial = state.capacities()[node].copy()
    at_us: float = now_us
    running = [state.running[job] for job in trial.jobs]
    for job in sorted(running, key=lambda job: (likely_end(job, now_us), job.number)):
        if trial.roomy(resources) and choose(trial, resources) is not None:
            break
        at_us = likely_end(job, now_us)
        for placement in job.placements:
            if placement.node == node:
                trial.release(job.job, job.resources, placement.uuids)
    return at_us


def likely_end(job: Running, now_us: int) -> float:
    """When a running job is over, half of the time; infinite if nothing tells."""
    return end_us(job, "p50_us", now_us, earliest_us=now_us)
