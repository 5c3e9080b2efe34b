"""``/groups``: the jobs of a sweep as one."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, known_tags, not_modified, tagged
from service.api.auth import context, requires
from service.api.routes.filters import Limit, Listed
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from service.jobs import group_actions, group_queries, groups
from torchyard import api

router = api_router("groups", "/groups")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Submitter = Annotated[Caller, requires("submit")]
Metric = Annotated[str | None, Query(min_length=1, max_length=255)]


@router.get("", response_model=api.Page[api.Group])
def list_groups(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    filters: Listed,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Response:
    """Sweeps, the newest first; a state passes that any trial is in."""
    page = group_queries.page(ctx.db, caller, filters, cursor, limit)
    tag = etag(page.next, page.items)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/{group}", response_model=api.Group)
def show_group(
    request: Request, group: str, caller: Reader, ctx: Ctx, metric: Metric = None, mode: groups.Mode | None = None
) -> Response:
    """A sweep by id or number, with its best trial by a metric."""
    return tagged(group_queries.group(ctx.db, caller, group, metric, mode, known_tags(request)))


@router.get("/{group}/trials", response_model=api.Page[api.Job])
def list_trials(
    request: Request,
    group: str,
    caller: Reader,
    ctx: Ctx,
    metric: Metric = None,
    mode: groups.Mode | None = None,
    best_first: bool = False,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Response:
    """The trials by their numbers; or the best first, then those that have not reported the metric."""
    query = group_queries.TrialsQuery(metric=metric, mode=mode, best_first=best_first, cursor=cursor, limit=limit)
    return tagged(group_queries.trials(ctx.db, caller, group, query, known_tags(request)))


@router.post("/{group}/cancel", response_model=api.Group)
def cancel_group(group: str, caller: Submitter, ctx: Ctx) -> Response:
    """Stops all trials for good: those that wait at once, those that run after they have saved their work."""
    return _presented(ctx, caller, group, group_actions.cancel)


@router.post("/{group}/hold", response_model=api.Group)
def hold_group(group: str, caller: Submitter, ctx: Ctx) -> Response:
    """Keeps the trials that wait from starting."""
    return _presented(ctx, caller, group, group_actions.hold)


@router.post("/{group}/release", response_model=api.Group)
def release_group(group: str, caller: Submitter, ctx: Ctx) -> Response:
    """Lets the trials that are held start."""
    return _presented(ctx, caller, group, group_actions.release)


@router.post("/{group}/resume", response_model=api.Group)
def resume_group(group: str, caller: Submitter, ctx: Ctx) -> Response:
    """Lets the trials of a sweep start again that was paused because its first ones failed alike."""
    return _presented(ctx, caller, group, group_actions.resume)


def _presented(ctx: Context, caller: Caller, group: str, action: group_actions.Action) -> Response:
    found = group_actions.act(ctx.db, ctx.now_us, caller, group, action)
    return tagged(group_queries.changed(ctx.db, caller, found))
