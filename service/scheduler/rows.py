"""What a job's row in the table says (`table.Column`)."""

import math
from typing import TYPE_CHECKING

from service.scheduler.lanes import Lane

if TYPE_CHECKING:
    from service.scheduler.state import Job, Running, Waiting


def lane(job: "Job") -> Lane:
    """What it has in common with jobs like it."""
    return Lane(job.shape, job.nodes, job.user, job.project, job.group, job.preemptible)


def waiting(job: "Waiting") -> tuple[float, ...]:
    """The columns of a job that waits."""
    left, guess = _known(job)
    likely = math.inf if job.remaining is None else job.remaining.p90_us
    limit = math.inf if job.limit_us is None else job.limit_us
    waited, queued = -(job.eligible_us + job.ran_us), job.hindrance is None
    start = (job.number, job.priority, job.eligible_us)
    return *start, waited, 1, job.ran_us, 0, left, 0, guess, min(limit, likely), math.inf, math.inf, queued


def running(job: "Running") -> tuple[float, ...]:
    """The columns of a job that runs."""
    left, guess = _known(job)
    as_of_us = None if job.remaining is None else job.remaining.as_of_us
    left, shrinks = left + (as_of_us or 0), as_of_us is not None
    waited, ran = max(job.since_us - job.eligible_us - job.ran_us, 0), job.ran_us - job.since_us
    spared = job.spared_until_us if job.preemptible and job.yields_to is None else math.inf
    start = (job.number, job.priority, job.eligible_us)
    return *start, waited, 0, ran, 1, left, shrinks, guess, math.inf, spared, job.since_us, 0


def _known(job: "Job") -> tuple[float, float]:
    """Running time to come as the job itself tells it, and as others do; NaN: nobody tells."""
    if job.remaining is None:
        return math.nan, math.nan
    if job.remaining.source.own:
        return job.remaining.p50_us, math.nan
    return math.nan, job.remaining.p50_us
