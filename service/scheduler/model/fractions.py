"""Shared GPUs: the part, by memory, that stays available to others and that the job is not charged for.

In quotas of GPU-hours and in the usage of users and projects, a job that shares a GPU counts as its part of it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from service.scheduler.model.columns import Floats, Ints
from service.scheduler.model.nodes import NodeInfo, Placement, ResourceRequest
from service.scheduler.model.state import SchedulerState


def shareable_gpus(resources: ResourceRequest, placements: Iterable[Placement], infos: Mapping[str, NodeInfo]) -> float:
    """Return how much of the job's GPUs others may use, in GPUs; a GPU that is not known any more counts nothing."""
    if not resources.gpu_share:
        return 0.0
    memories = (
        infos[placement.node].memory_of(uuid)
        for placement in placements
        if placement.node in infos
        for uuid in placement.uuids
    )
    return sum(max(1 - resources.gpu_share / memory, 0.0) for memory in memories if memory)


def shareable_by_row(state: SchedulerState) -> tuple[Ints, Floats]:
    """Return the rows of the running jobs that share GPUs, and how much of each job's GPUs others may use, in GPUs."""
    jobs = [state.running[job] for job in sorted(state.sharing)]
    rows: Ints = np.array([state.table.rows[job.job] for job in jobs], dtype=np.intp)
    return rows, np.array(
        [shareable_gpus(job.resources, job.placements, state.nodes) for job in jobs], dtype=np.float64
    )
