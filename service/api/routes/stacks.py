"""``/jobs/{id}/stacks``: what a run's processes do."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service import lifecycle
from service.api.answers import answer, not_modified, tagged
from service.api.auth import context, requires
from service.api.routes.refs import JobPath, JobRef
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from service.jobs import change, queries
from service.telemetry import stacks
from torchyard import api

router = api_router("jobs", "/jobs")
Ctx = Annotated[Context, Depends(context)]


@router.get("/{job_id}/stacks", response_model=list[api.Stacks])
def list_stacks(request: Request, job_id: JobRef, ctx: Ctx) -> Response:
    """List the stacks of the newest attempt that has any, the newest first. Taken when it seemed to hang or somebody
    asked.
    """
    found = stacks.of_job(ctx.db, job_id)
    tag = etag([(each.attempt, each.node_rank, each.serial) for each in found])
    return not_modified(request, tag) or answer(found, tag=tag)


@router.post("/{job_id}/stacks", status_code=202, response_model=api.Job)
def ask_for_stacks(job_id: JobPath, caller: Annotated[Caller, requires("submit")], ctx: Ctx) -> Response:
    """Ask for the stacks of a running job's processes. They come within seconds."""
    found = change.act(ctx.db, ctx.now_us, caller, job_id, lifecycle.request_dump)
    return tagged(queries.changed(ctx.db, caller, found), status=202)
