"""Files that jobs leave in their output folders."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service import outputs
from service.answers import answer, etag, not_modified
from service.auth import context, requires
from service.context import Context
from service.downloads import download
from service.routes.refs import JobId
from service.routes.router import api_router
from torchyard import api

router = api_router("outputs", dependencies=[requires("read")])
Ctx = Annotated[Context, Depends(context)]


@router.get("/jobs/{job_id}/outputs", response_model=list[api.Output])
def of_job(job_id: JobId, request: Request, ctx: Ctx) -> Response:
    """The job's output files, by name."""
    with ctx.db.read() as tx:
        found = outputs.of_job(tx, job_id)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.get("/jobs/{job_id}/outputs/{name:file}", response_class=Response)
def file(job_id: JobId, name: str, request: Request, ctx: Ctx) -> Response:
    """An output file; ranges are answered, and its hash is the ETag."""
    with ctx.db.read() as tx:
        sha256 = outputs.file_hash(tx, job_id, name)
    return download(request, ctx.store, sha256, name)
