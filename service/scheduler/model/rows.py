"""Conversion of jobs into rows of the table (`table.Column`)."""

import math

from service.scheduler.model.equivalence import EquivalenceClass
from service.scheduler.model.jobs import Estimate, JobInfo, Running, Waiting

#: Least remaining time that is assumed for a job without an estimate, once it has run for a time slice.
_UNKNOWN_US = 60 * 1_000_000


def equivalence_class(job: JobInfo) -> EquivalenceClass:
    """Return the job's equivalence class."""
    flags = job.preemptible, job.pinned, job.restartable
    return EquivalenceClass(job.resources, job.nodes, job.user, job.project, job.group, *flags)


def waiting(job: Waiting) -> tuple[float, ...]:
    """Return the table's columns for a waiting job."""
    known = job.remaining
    limit = math.inf if job.limit_us is None else job.limit_us
    bound = limit if known is None else min(limit, known.p50_us)
    left, least, most = _told(known)
    moving = (-job.eligible_us, -(job.eligible_us + job.ran_us), job.ran_us, left, 1, 1, 0, 0)
    return *moving, least, most, bound, math.inf, math.inf, job.ineligible is None, job.number, job.priority, math.inf


def running(job: Running) -> tuple[float, ...]:
    """Return the table's columns for a running job."""
    known, since_us = job.remaining, job.since_us
    as_of_us = None if known is None else known.as_of_us
    left, least, most = _told(known)
    waited = max(since_us - job.eligible_us - job.ran_us, 0)
    ran = job.ran_us - max(since_us, job.begun_us)
    moving = (-job.eligible_us, waited, ran, left + (as_of_us or 0), 1, 0, 1, -(as_of_us is not None))
    spared = job.spared_until_us if (job.preemptible or job.restartable) and job.preempted_for is None else math.inf
    until = math.inf if job.preemptible else job.trial_ends_us
    return *moving, least, most, math.inf, spared, since_us, 0, job.number, job.priority, until


def _told(known: Estimate | None) -> tuple[float, float, float]:
    """Return the columns LEFT, LEAST and MOST: remaining time as measured on the job itself, or else the bounds
    within which it is assumed to run for as long again as it has run.
    """
    if known is None:
        return math.nan, _UNKNOWN_US, math.inf
    if known.source.own:
        return known.p50_us, math.nan, math.nan
    return math.nan, known.p50_us, known.p50_us
