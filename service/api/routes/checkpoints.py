"""Checkpoints of jobs: list, download, delete."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.downloads import download
from service.api.routes.refs import CheckpointRef, FilePath, JobRef
from service.api.routes.router import api_router
from service.artifacts import checkpoints
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from torchyard import api

router = api_router("checkpoints")
Ctx = Annotated[Context, Depends(context)]


@router.get("/jobs/{job_id}/checkpoints", response_model=list[api.Checkpoint], dependencies=[requires("read")])
def of_job(job_id: JobRef, request: Request, ctx: Ctx) -> Response:
    """List the checkpoints of a job, the newest last."""
    found = checkpoints.of_job(ctx.db, job_id)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/checkpoints/{checkpoint_id}", response_model=api.Checkpoint, dependencies=[requires("read")])
def show(checkpoint_id: CheckpointRef, ctx: Ctx) -> Response:
    """Show a checkpoint."""
    return answer(checkpoints.get(ctx.db, checkpoint_id))


@router.get("/checkpoints/{checkpoint_id}/files/{name:file}", response_class=Response, dependencies=[requires("read")])
def file(checkpoint_id: CheckpointRef, name: FilePath, request: Request, ctx: Ctx) -> Response:
    """Download a file of a stored checkpoint. Ranges are answered, and its hash is the ETag."""
    sha256 = checkpoints.file_hash(ctx.db, checkpoint_id, name)
    return download(request, ctx.store, sha256, name)


@router.delete("/checkpoints/{checkpoint_id}", status_code=204)
def delete(caller: Annotated[Caller, requires("submit")], checkpoint_id: CheckpointRef, ctx: Ctx) -> None:
    """Delete a checkpoint that no job needs any more."""
    with ctx.db.with_reserve():
        checkpoints.delete(ctx.db, ctx.store, checkpoint_id, caller, ctx.now_us())
