"""Of GPUs that jobs share: how much of them is not theirs, by memory, as it is not charged to them either.

Against GPU-hours a week and in what somebody has had, a job that shares a GPU counts as its part of it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from service.scheduler.model.columns import Floats, Ints
from service.scheduler.model.nodes import NodeInfo, Placement, ResourceRequest
from service.scheduler.model.state import SchedulerState


def shareable_gpus(resources: ResourceRequest, placements: Iterable[Placement], infos: Mapping[str, NodeInfo]) -> float:
    """What others may have of the GPUs that a job is given, in GPUs; of one that is not known any more, nothing."""
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
    """Rows of the running jobs that share GPUs, and what others may have of these."""
    jobs = [state.running[job] for job in sorted(state.sharing)]
    rows: Ints = np.array([state.table.rows[job.job] for job in jobs], dtype=np.intp)
    return rows, np.array(
        [shareable_gpus(job.resources, job.placements, state.nodes) for job in jobs], dtype=np.float64
    )
