"""End of running jobs, as far as their estimates and their limits tell. Pure."""

import math
from typing import Literal

from service.scheduler.model.jobs import Running

#: Quantile of the running time: five of ten such jobs have ended by then, or nine.
Quantile = Literal["p50_us", "p90_us"]


def end_us(job: Running, quantile: Quantile, now_us: int, *, earliest_us: float = -math.inf) -> float:
    """Return when a running job ends, in microseconds; infinite without an estimate and a limit.

    The time since its estimate was made is taken off. A job that should have ended before `earliest_us` is taken to end
    then; its time limit ends it in any case.
    """
    limit = math.inf if job.ends_us is None else job.ends_us
    if job.remaining is None:
        return limit
    as_of_us = now_us if job.remaining.as_of_us is None else job.remaining.as_of_us
    left_us: int = getattr(job.remaining, quantile)
    return min(limit, max(as_of_us + left_us, earliest_us))
