"""Metrics that jobs report, and telemetry sampled beside them."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, known_tags, tagged
from service.api.auth import context, requires
from service.api.routes.refs import JobId
from service.api.routes.router import api_router
from service.context import Context
from service.telemetry import metrics
from torchyard import api

router = api_router("metrics", dependencies=[requires("read")])
Ctx = Annotated[Context, Depends(context)]
MaxPoints = Annotated[int, Query(ge=10, le=100_000, description="Points of a series; peaks are kept")]
Since = Annotated[str | None, Query(max_length=50_000, description="`cursor` of an earlier answer: only newer points")]


@router.get("/jobs/{job_id}/metrics", response_model=api.Metrics)
def of_job(
    job_id: JobId,
    request: Request,
    ctx: Ctx,
    names: Annotated[list[str] | None, Query(description="Repeated or with commas; all if absent")] = None,
    rank: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    max_points: MaxPoints = 2000,
    all_points: Annotated[bool, Query(description="Every point, whatever `max_points` says")] = False,
    since: Since = None,
) -> Response:
    """Series of points `[step, unix time, value]`. Where a later attempt has resumed, what came after that step in an
    earlier one is left out.
    """
    wanted = frozenset(name for part in names or () for name in part.split(",") if name)
    query = metrics.MetricsQuery(names=wanted, rank=rank, max_points=None if all_points else max_points, since=since)
    return tagged(metrics.of_job(ctx.db, job_id, query, known_tags(request)))


@router.get("/jobs/{job_id}/telemetry", response_model=api.Metrics)
def telemetry(job_id: JobId, ctx: Ctx, max_points: MaxPoints = 1000, since: Since = None) -> Response:
    """Processor, memory and GPU of the job's processes, sampled every 2 s and kept for a week."""
    return answer(metrics.telemetry_of_job(ctx.db, job_id, max_points, since))


@router.get("/nodes/{name}/telemetry", response_model=api.Metrics)
def node_telemetry(name: str, ctx: Ctx, max_points: MaxPoints = 1000, since: Since = None) -> Response:
    """Processor, memory and GPUs of a node, sampled every 2 s and kept for a week."""
    return answer(metrics.telemetry_of_node(ctx.db, name, max_points, since))
