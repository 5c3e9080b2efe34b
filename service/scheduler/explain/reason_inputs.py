"""Inputs of reasons. Pure."""

import math
from dataclasses import dataclass
from datetime import datetime

from service.infra.times import minute
from service.scheduler.explain.lack import counted
from service.scheduler.explain.names import Names
from service.scheduler.model.jobs import Waiting
from service.scheduler.model.state import SchedulerState


@dataclass(frozen=True, kw_only=True)
class ReasonInputs:
    """All that the words of one job's reasons depend on, besides the obstacle itself."""

    state: SchedulerState
    waiting: Waiting
    names: Names
    now_us: int
    starts_us: int | None
    """Expected start of the job; None if there is no forecast."""

    def devices(self, number: float) -> str:
        """Return so many devices in words, by what the nodes have."""
        return counted(number, self.state.nodes.values())


def moment(at_us: float) -> datetime | None:
    """Return the time to the minute; None for an infinite one."""
    return None if at_us == math.inf else minute(at_us)
