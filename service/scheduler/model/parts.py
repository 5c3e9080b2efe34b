"""Of GPUs that jobs share: how much of them is not theirs, by memory, as it is not charged to them either.

Against GPU-hours a week and in what somebody has had, a job that shares a GPU counts as its part of it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from service.scheduler.model.boxes import Box, Place, Shape
from service.scheduler.model.columns import Floats, Ints
from service.scheduler.model.state import State


def rest(shape: Shape, places: Iterable[Place], boxes: Mapping[str, Box]) -> float:
    """What others may have of the GPUs that a job is given, in GPUs; of one that is not known any more, nothing."""
    if not shape.gpu_share:
        return 0.0
    memories = (boxes[place.node].memory_of(uuid) for place in places if place.node in boxes for uuid in place.uuids)
    return sum(max(1 - shape.gpu_share / memory, 0.0) for memory in memories if memory)


def rests(state: State) -> tuple[Ints, Floats]:
    """Rows of the running jobs that share GPUs, and what others may have of these."""
    jobs = [state.running[job] for job in sorted(state.sharing)]
    rows: Ints = np.array([state.table.rows[job.job] for job in jobs], dtype=np.intp)
    return rows, np.array([rest(job.shape, job.places, state.boxes) for job in jobs], dtype=np.float64)
