"""``/nodes``: their devices and holders; drain, resume and declare dead."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.routes.refs import NodePath
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from service.nodes import administration, invitations, listing
from service.queue import idle
from service.queue import timeline as device_timeline
from torchyard import api
from torchyard.spec.base import NAME

router = api_router("nodes", "/nodes")
Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Admin = Annotated[Caller, requires("admin")]
HOUR_US = 3600 * 1_000_000


@router.get("", response_model=api.Page[api.Node])
def list_nodes(request: Request, caller: Reader, ctx: Ctx) -> Response:
    """List all nodes with their devices and holders. Names of jobs that the caller may not read are left out."""
    page = api.Page[api.Node](items=listing.list_nodes(ctx.db, caller))
    tag = etag(page)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.get("/timeline", response_model=api.Timeline)
def timeline(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    hours: Annotated[int, Query(ge=1, le=168, description="How far back allocations and outages are told.")] = 24,
) -> Response:
    """Show who has had each device, has it now and is expected to get it. With reservations and outages. Of jobs that
    the caller may not read, user, resources and times are told.
    """
    found = device_timeline.load(ctx.db, ctx.loader, ctx.now_us(), caller, hours * HOUR_US)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/utilization", response_model=api.Utilization, dependencies=[requires("read")])
def utilization(
    request: Request,
    ctx: Ctx,
    hours: Annotated[int, Query(ge=1, le=168, description="How far back use is told.")] = 24,
) -> Response:
    """Show how busy each device was and how much of its memory was held. In 181 equal buckets, the last the present
    one; a bucket without samples has null. The answer may be a quarter of a bucket old.
    """
    found = ctx.utilization.load(ctx.db, ctx.now_us(), hours)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/idle", response_model=list[api.IdleDevices], dependencies=[requires("read")])
def list_idle(request: Request, ctx: Ctx) -> Response:
    """List the devices that no job has. For which job they are idle, until when, and which jobs cannot be stopped for
    it.
    """
    found = idle.load(ctx.db, ctx.loader, ctx.now_us())
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.post("/{name}/invitations", response_model=api.Invitation, status_code=201)
def invite(
    name: Annotated[str, Path(pattern=f"^{NAME}$", description="Name that the node gets.")],
    asked: api.NewInvitation,
    ctx: Ctx,
    caller: Admin,
) -> Response:
    """Invite a machine as a node of this name. The token counts once, and until it expires."""
    found = invitations.invite(ctx.db, caller, name, asked, ctx.now_us())
    return answer(found, status=201, headers={"Cache-Control": "no-store"})


@router.post("", response_model=api.NodeToken, status_code=201)
def join(new: api.NewNode, request: Request, ctx: Ctx, caller: Annotated[Caller, requires("join")]) -> Response:
    """Join as a node, with the token of an invitation. The answer has the node's own token."""
    found = invitations.join(ctx.db, request.app.state.tokens, caller, new, ctx.now_us())
    return answer(found, status=201, headers={"Cache-Control": "no-store"})


@router.post("/{name}/drain", response_model=api.Node)
def drain(
    name: NodePath,
    ctx: Ctx,
    caller: Admin,
    stop_jobs: Annotated[bool, Query(description="Also ask its jobs to save their work and wait elsewhere.")] = False,
    new: api.NewDrain | None = None,
) -> Response:
    """Drain a node: it gets no new jobs. Those that run go on unless `stop_jobs` is given."""
    message = new.message if new is not None else ""
    return answer(administration.drain(ctx.db, caller, name, ctx.now_us(), stop_jobs=stop_jobs, message=message))


@router.post("/{name}/resume", response_model=api.Node)
def resume(name: NodePath, ctx: Ctx, caller: Admin) -> Response:
    """Resume a drained node, so that it takes jobs again. ``conflict`` in its maintenance."""
    return answer(administration.resume(ctx.db, caller, name, ctx.now_us()))


@router.post("/{name}/devices/{device}/return", response_model=api.Node)
def return_device(
    name: NodePath, device: Annotated[str, Path(description="Index or UUID of the device.")], ctx: Ctx, caller: Admin
) -> Response:
    """Return a device to use that a fault has put out of use. ``conflict`` for any other."""
    return answer(administration.return_device(ctx.db, caller, name, device, ctx.now_us()))


@router.post("/{name}/declare-dead", response_model=api.Node)
def declare_dead(name: NodePath, ctx: Ctx, caller: Admin) -> Response:
    """Declare a silent node dead, with all that ran on it. Its jobs are retried or fail."""
    return answer(administration.declare_dead(ctx.db, caller, name, ctx.now_us()))
