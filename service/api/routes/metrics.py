"""Metrics that jobs report, and telemetry sampled beside them."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, known_tags, tagged
from service.api.auth import context, requires
from service.api.routes.refs import JobRef, NodePath, Reader
from service.api.routes.router import api_router
from service.context import Context
from service.errors import ProblemError, field_problem
from service.identity.callers import Caller
from service.jobs import extremes, queries
from service.telemetry import curves, metrics, samples
from service.telemetry.blocks import Axis
from torchyard import api
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText

#: Jobs and metrics of one answer at most.
MAX_JOBS = 200
MAX_NAMES = 20
#: Metrics whose ends are in one answer at most: they cost no points.
MAX_ENDS = 200

router = api_router("metrics", dependencies=[requires("read")])
Ctx = Annotated[Context, Depends(context)]
MaxPoints = Annotated[int, Query(ge=10, le=100_000, description="Points of a series; peaks are kept")]
Since = Annotated[str | None, Query(max_length=50_000, description="`cursor` of an earlier answer: only newer points")]
Buckets = Annotated[
    int | None,
    Query(
        ge=10,
        le=100_000,
        description="Of a series with more points than this: the smallest, largest and mean value of so many equal "
        "parts of the range, and how many points each has; of others every point. `max_points` does not count then",
    ),
]
Jobs = Annotated[str, Query(max_length=10_000, description="Numbers or ids, with commas between them")]
Names = Annotated[list[str], Query(description="Metrics, repeated or with commas")]
Start = Annotated[
    float | None,
    Query(allow_inf_nan=False, description="Only points from this step or unix time on, see `axis`; not with `since`"),
]
End = Annotated[float | None, Query(allow_inf_nan=False, description="Only points up to this step or unix time")]


async def metrics_query(
    names: Annotated[list[str] | None, Query(description="Repeated or with commas; all if absent")] = None,
    rank: Annotated[int | None, Query(ge=0, lt=2**31, description="Only this rank; all if absent")] = None,
    max_points: MaxPoints = 2000,
    since: Since = None,
    buckets: Buckets = None,
    axis: Annotated[Axis, Query(description="What `start`, `end` and `buckets` count in")] = Axis.STEP,
    start: Start = None,
    end: End = None,
) -> metrics.MetricsQuery:
    """The choice of a job's series that a request makes. A coroutine, so that it costs no thread."""
    return metrics.MetricsQuery(
        names=frozenset(name for part in names or () for name in part.split(",") if name),
        rank=rank,
        max_points=max_points,
        since=since,
        buckets=buckets,
        range=metrics.MetricsRange(axis=axis, start=start, end=end),
    )


AskedMetrics = Annotated[metrics.MetricsQuery, Depends(metrics_query)]


@router.get("/jobs/{job_id}/metrics", response_model=api.Metrics)
def of_job(
    job_id: JobRef,
    request: Request,
    ctx: Ctx,
    query: AskedMetrics,
    all_points: Annotated[bool, Query(description="Every point, whatever `max_points` says")] = False,
) -> Response:
    """Read the metrics of a job as series of points. Each point is `[step, unix time, value]`. Where a later attempt
    has resumed, what came after that step in an earlier one is left out.
    """
    if all_points:
        query = replace(query, max_points=None, buckets=None)
    return tagged(metrics.of_job(ctx.db, job_id, query, known_tags(request)))


@router.get("/jobs/{job_id}/telemetry", response_model=api.Metrics)
def telemetry(
    job_id: JobRef,
    ctx: Ctx,
    max_points: MaxPoints = 1000,
    since: Since = None,
    buckets: Buckets = None,
    start: Start = None,
    end: End = None,
) -> Response:
    """Read processor, memory and GPU use of a job's processes. Sampled every 2 s and kept for a week; `start` and `end`
    are unix times. A bucket sums up 32 of its samples where it has more; a shorter range has every one.
    """
    query = samples.SamplesQuery(max_points=max_points, since=since, buckets=buckets, start=start, end=end)
    return answer(samples.of_job(ctx.db, job_id, query))


@router.get("/nodes/{name}/telemetry", response_model=api.Metrics)
def node_telemetry(name: NodePath, ctx: Ctx, max_points: MaxPoints = 1000, since: Since = None) -> Response:
    """Read processor, memory and GPU use of a node. Sampled every 2 s and kept for a week."""
    return answer(samples.of_node(ctx.db, name, samples.SamplesQuery(max_points=max_points, since=since)))


@router.get("/metrics/curves", response_model=api.Curves)
def of_jobs(
    ctx: Ctx,
    caller: Reader,
    jobs: Jobs,
    names: Names,
    parts: Annotated[
        int, Query(ge=10, le=2_000, description="Parts of the range, between half and all of these")
    ] = 300,
    axis: Annotated[Axis, Query(description="`time` counts seconds from each job's start")] = Axis.STEP,
    start: Start = None,
    end: End = None,
    rough: Annotated[bool, Query(description="A first look at once: a few points of each part")] = False,
) -> Response:
    """Compare metrics of many jobs on one grid. Of each part of the range the smallest, largest and mean value, and how
    many points it has. Of each job the lowest rank that reports.
    """
    query = curves.CurvesQuery(
        jobs=_ids(ctx, caller, jobs),
        names=_wanted(names, MAX_NAMES),
        parts=parts,
        axis=axis,
        start=start,
        end=end,
        rough=rough,
    )
    return answer(curves.read(ctx.db, ctx.curves, query))


@router.get("/metrics/extremes", response_model=api.Extremes)
def ends_of_jobs(ctx: Ctx, caller: Reader, jobs: Jobs, names: Names) -> Response:
    """Read the smallest and largest values of metrics of many jobs. Of each job the lowest rank that reports; kept when
    the points are discarded.
    """
    return answer(extremes.read(ctx.db, _ids(ctx, caller, jobs), _wanted(names, MAX_ENDS)))


def _ids(ctx: Context, caller: Caller, jobs: str) -> list[JobId]:
    refs = [ref for ref in dict.fromkeys(map(str.strip, jobs.split(","))) if ref]
    if len(refs) > MAX_JOBS:
        raise _too_many("jobs", len(refs), MAX_JOBS)
    return queries.find_ids(ctx.db, caller, refs)


def _wanted(names: list[str], most: int) -> frozenset[str]:
    wanted = frozenset(name for part in names for name in part.split(",") if name)
    if len(wanted) > most:
        raise _too_many("names", len(wanted), most)
    return wanted


def _too_many(field: str, count: int, most: int) -> ProblemError:
    words = TranslatableText("ask-fewer", "{count} are too many: ask for {most} at most", count=count, most=most)
    return field_problem(field, words)
