"""What a waiting job wants to have if it starts now."""

import math

from service.scheduler.model.jobs import Waiting
from service.scheduler.policy.placement import PlacementRequest
from torchyard.spec.policy import Policy


def placement_request(job: Waiting, now_us: int, policy: Policy) -> PlacementRequest:
    """As of one moment, under a policy."""
    limit = math.inf if job.limit_us is None else job.limit_us
    likely = math.inf if job.remaining is None else job.remaining.p90_us
    return PlacementRequest(
        job=job.job,
        resources=job.resources,
        nodes=job.nodes,
        user=job.user,
        project=job.project,
        preemptible=job.preemptible and preempts(policy),
        ends_us=now_us + min(limit, likely),
        surely_ends_us=now_us + limit,
    )


def preempts(policy: Policy) -> bool:
    """Whether jobs are stopped for others at all."""
    return policy.preemption or policy.time_slice is not None
