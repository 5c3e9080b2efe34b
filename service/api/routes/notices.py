"""``/notices``, ``/pause`` and ``/announcement``: what administrators tell everybody, and whether jobs start."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service import notices
from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from torchyard import api

router = api_router("notices")
Ctx = Annotated[Context, Depends(context)]
Admin = Annotated[Caller, requires("admin")]


@router.get("/notices", response_model=api.Notices, dependencies=[requires("read")])
def show_notices(request: Request, ctx: Ctx) -> Response:
    """Show the pause of the queue and the announcement."""
    found = notices.get_notices(ctx.db, ctx.now_us())
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.put("/pause", response_model=api.Notices)
def pause(new: api.NewPause, caller: Admin, ctx: Ctx) -> Response:
    """Pause the queue. No job starts, and none is preempted, until it is taken away; those that run go on."""
    return answer(notices.pause(ctx.db, caller, new, ctx.now_us()))


@router.delete("/pause", response_model=api.Notices)
def resume(caller: Admin, ctx: Ctx) -> Response:
    """Resume the queue, so that jobs start again."""
    return answer(notices.resume(ctx.db, caller, ctx.now_us()))


@router.put("/announcement", response_model=api.Notices)
def announce(new: api.NewAnnouncement, caller: Admin, ctx: Ctx) -> Response:
    """Announce something to everybody. It takes the place of what they were told before."""
    return answer(notices.announce(ctx.db, caller, new, ctx.now_us()))


@router.delete("/announcement", response_model=api.Notices)
def withdraw(caller: Admin, ctx: Ctx) -> Response:
    """Withdraw the announcement."""
    return answer(notices.withdraw(ctx.db, caller, ctx.now_us()))
