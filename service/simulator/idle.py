"""GPU time that nobody used although a waiting job would have fitted: avoidable, or kept for a blocked job."""

import math
from collections.abc import Mapping

import numpy as np

from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.placement import Hold
from service.scheduler.policy.quotas import RemainingQuotas, spent


class IdleTime:
    """Idle GPU time of one simulation, in GPU-microseconds.

    A free GPU counts while a waiting job that no quota holds back would fit on its node, or on as many such nodes as it
    needs.
    """

    def __init__(self) -> None:
        self.avoidable_us = self.kept_us = 0
        self._since_us = 0
        #: GPUs that are idle now.
        self._avoidable = self._kept = 0

    def look(self, state: SchedulerState, holds: Mapping[str, Hold], now_us: int) -> None:
        """Count the time since the last look, and which GPUs are idle from now on; `holds` are the blocked jobs'."""
        passed_us, self._since_us = now_us - self._since_us, now_us
        self.avoidable_us += passed_us * self._avoidable
        self.kept_us += passed_us * self._kept
        self._avoidable = self._kept = 0
        if not state.waiting:
            return
        free = {node: capacity.free for node, capacity in state.capacities().items() if capacity.free}
        least = _least(state, [len(slots) for slots in free.values()], now_us) if free else math.inf
        for node, slots in free.items():
            if len(slots) >= least:
                kept = len(slots.keys() & holds[node].uuids) if node in holds else 0
                self._kept += kept
                self._avoidable += len(slots) - kept


def _least(state: SchedulerState, free: list[int], now_us: int) -> float:
    """Return the fewest GPUs that a waiting job needs on each of its nodes, of those that fit; infinite without any."""
    numbers = np.unique(state.table.class_id[state.table.queued()])
    quotas = RemainingQuotas(state, now_us)
    numbers = numbers[~spent(quotas, state)[numbers]] if quotas.bounded else numbers
    kinds = {(int(state.classes.whole[number]), int(state.classes.nodes[number])) for number in numbers}
    fitting = [whole for whole, nodes in kinds if sum(count >= whole for count in free) >= nodes]
    return min(fitting, default=math.inf)
