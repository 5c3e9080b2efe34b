"""When running jobs are over, as far as their estimates and their limits tell. Pure."""

import math
from typing import Literal

from service.scheduler.model.jobs import Running

#: Of ten such jobs five are over by then, or nine.
Quantile = Literal["p50_us", "p90_us"]


def end_us(job: Running, quantile: Quantile, now_us: int, *, earliest_us: float = -math.inf) -> float:
    """When a running job is over; infinite if nothing tells.

    What has passed since its estimate was made is taken off, down to `earliest_us`: a job that should be over by then
    is over then. Its time limit ends it in any case.
    """
    limit = math.inf if job.ends_us is None else job.ends_us
    if job.remaining is None:
        return limit
    as_of_us = now_us if job.remaining.as_of_us is None else job.remaining.as_of_us
    left_us: int = getattr(job.remaining, quantile)
    return min(limit, max(as_of_us + left_us, earliest_us))
