"""``/nodes``: their devices and holders; drain, resume and declare dead."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from sqlalchemy import Connection

from service import lifecycle
from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.errors import ProblemError, not_found
from service.identity.callers import Caller
from service.identity.people import audit
from service.infra.etags import etag
from service.nodes import listing, maintenance, registration
from torchyard import api

router = api_router("nodes", "/nodes")
Ctx = Annotated[Context, Depends(context)]
Admin = Annotated[Caller, requires("admin")]


@contextmanager
def _changing(ctx: Context, name: str) -> Iterator[Connection]:
    """A write transaction on a node; afterwards everybody who looks at it is woken."""
    try:
        with ctx.db.write() as tx:
            yield tx
    except lifecycle.Unknown as error:
        raise not_found("node", name) from error
    except lifecycle.Conflict as error:
        raise ProblemError("conflict", str(error)) from error
    ctx.hub.notify(f"node:{name}", "queue")
    ctx.wake_scheduler()


@router.get("", response_model=api.Page[api.Node], dependencies=[requires("read")])
def list_nodes(request: Request, ctx: Ctx) -> Response:
    """All nodes with their devices."""
    with ctx.db.read() as tx:
        page = api.Page[api.Node](items=listing.present(tx))
    tag = etag(page)
    return not_modified(request, tag) or answer(page, tag=tag)


@router.post("/{name}/drain", response_model=api.Node)
def drain(
    name: str,
    ctx: Ctx,
    caller: Admin,
    stop_jobs: Annotated[bool, Query(description="Also ask its jobs to save their work and wait elsewhere.")] = False,
) -> Response:
    """Gives the node no new jobs; those that run go on unless `stop_jobs` is given."""
    stopped: list[str] = []
    with _changing(ctx, name) as tx:
        registration.set_draining(tx, name, True)
        maintenance.keep_drained(tx, name)
        if stop_jobs:
            stopped = registration.stop_jobs(tx, name, caller.name, ctx.now_us())
        audit(tx, caller, "node.drain", name, ctx.now_us(), stop_jobs=stop_jobs)
    _tell(ctx, name, stopped)
    return _one(ctx, name)


@router.post("/{name}/resume", response_model=api.Node)
def resume(name: str, ctx: Ctx, caller: Admin) -> Response:
    """Lets the node take jobs again; ``conflict`` in its maintenance."""
    with _changing(ctx, name) as tx:
        maintenance.refuse_resume(tx, name, ctx.now_us())
        registration.set_draining(tx, name, False)
        audit(tx, caller, "node.resume", name, ctx.now_us())
    return _one(ctx, name)


@router.post("/{name}/declare-dead", response_model=api.Node)
def declare_dead(name: str, ctx: Ctx, caller: Admin) -> Response:
    """An administrator's word that a silent node and all that ran on it are gone: its jobs are retried or fail."""
    with _changing(ctx, name) as tx:
        ended = registration.declare_dead(tx, name, caller.name, ctx.now_us())
        audit(tx, caller, "node.declare-dead", name, ctx.now_us(), jobs=ended)
    _tell(ctx, name, ended)
    return _one(ctx, name)


def _tell(ctx: Context, name: str, jobs: list[str]) -> None:
    if jobs:
        ctx.hub.notify(*(f"job:{job}" for job in jobs), "jobs")
        ctx.dispatcher.nudge(name)


def _one(ctx: Context, name: str) -> Response:
    with ctx.db.read() as tx:
        return answer(listing.present(tx, name)[0])
