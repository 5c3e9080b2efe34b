"""Placement requests of waiting jobs."""

import math

from service.scheduler.model.jobs import Waiting
from service.scheduler.policy.placement import PlacementRequest
from service.scheduler.policy.trials import leaves
from torchyard.spec.policy import Policy


def placement_request(job: Waiting, now_us: int, policy: Policy) -> PlacementRequest:
    """Return the placement request of a waiting job that would start at `now_us` under the policy."""
    limit = math.inf if job.limit_us is None else job.limit_us
    likely, late = (math.inf, math.inf) if job.remaining is None else (job.remaining.p50_us, job.remaining.p90_us)
    return PlacementRequest(
        job=job.job,
        resources=job.resources,
        nodes=job.nodes,
        user=job.user,
        project=job.project,
        preemptible=preempts(policy) and (job.preemptible or leaves(job, policy)),
        likely_end_us=now_us + min(limit, likely),
        ends_us=now_us + min(limit, late),
        latest_end_us=now_us + limit,
        late_end_us=now_us + min(limit, 2 * late),
    )


def preempts(policy: Policy) -> bool:
    """Return whether the policy preempts jobs at all."""
    return policy.preemption or policy.time_slice is not None
