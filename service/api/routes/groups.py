"""``/groups``: the jobs of a sweep as one."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from service.api.answers import answer, known_tags, not_modified, tagged
from service.api.auth import context, requires
from service.api.routes.filters import Cursor, Limit, Listed
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from service.jobs import group_actions, group_queries, groups
from torchyard import api
from torchyard.numbers import MAX_METRIC_NAME

router = api_router("groups", "/groups")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Submitter = Annotated[Caller, requires("submit")]
Metric = Annotated[
    str | None,
    Query(
        min_length=1, max_length=MAX_METRIC_NAME, description="Metric to compare trials by; by default the sweep's own."
    ),
]
Mode = Annotated[groups.Mode | None, Query(description="Whether small or large values of the metric are good.")]
GroupPath = Annotated[str, Path(description="Number or id of the sweep.")]


@router.get("", response_model=api.Page[api.Group])
def list_groups(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    filters: Listed,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """List sweeps, the newest first. A state passes that any trial is in."""
    page = group_queries.page(ctx.db, caller, filters, cursor, limit)
    tag = etag(page.next, page.items)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/{group}", response_model=api.Group)
def show_group(
    request: Request, group: GroupPath, caller: Reader, ctx: Ctx, metric: Metric = None, mode: Mode = None
) -> Response:
    """Show a sweep, with its best trial by a metric."""
    return tagged(group_queries.group(ctx.db, caller, group, metric, mode, known_tags(request)))


@router.get("/{group}/trials", response_model=api.Page[api.Job])
def list_trials(
    request: Request,
    group: GroupPath,
    caller: Reader,
    ctx: Ctx,
    metric: Metric = None,
    mode: Mode = None,
    best_first: Annotated[bool, Query(description="Best first instead of by number.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """List the trials of a sweep by their numbers, or the best first. Those that have not reported the metric come
    last then.
    """
    query = group_queries.TrialsQuery(metric=metric, mode=mode, best_first=best_first, cursor=cursor, limit=limit)
    return tagged(group_queries.trials(ctx.db, caller, group, query, known_tags(request)))


@router.post("/{group}/cancel", response_model=api.Group)
def cancel_group(group: GroupPath, caller: Submitter, ctx: Ctx) -> Response:
    """Cancel all trials of a sweep. Those that wait stop at once, those that run after they have saved their work."""
    with ctx.db.with_reserve():
        return _presented(ctx, caller, group, group_actions.cancel)


@router.post("/{group}/hold", response_model=api.Group)
def hold_group(group: GroupPath, caller: Submitter, ctx: Ctx) -> Response:
    """Hold the waiting trials of a sweep, so that they do not start."""
    return _presented(ctx, caller, group, group_actions.hold)


@router.post("/{group}/release", response_model=api.Group)
def release_group(group: GroupPath, caller: Submitter, ctx: Ctx) -> Response:
    """Release the held trials of a sweep, so that they start."""
    return _presented(ctx, caller, group, group_actions.release)


@router.post("/{group}/resume", response_model=api.Group)
def resume_group(group: GroupPath, caller: Submitter, ctx: Ctx) -> Response:
    """Resume a sweep that was paused because its first trials failed alike."""
    return _presented(ctx, caller, group, group_actions.resume)


def _presented(ctx: Context, caller: Caller, group: GroupPath, action: group_actions.Action) -> Response:
    found = group_actions.act(ctx.db, ctx.now_us, caller, group, action)
    return tagged(group_queries.changed(ctx.db, caller, found))
