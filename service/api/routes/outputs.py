"""Files that jobs write."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context, requires
from service.api.downloads import download
from service.api.routes.refs import FilePath, JobRef
from service.api.routes.router import api_router
from service.artifacts import outputs
from service.context import Context
from service.identity.callers import Caller
from service.infra.etags import etag
from torchyard import api
from torchyard.spec import MAX_NODES
from torchyard.wire import Root

router = api_router("outputs", dependencies=[requires("read")])
Ctx = Annotated[Context, Depends(context)]
Submitter = Annotated[Caller, requires("submit")]


@router.get("/jobs/{job_id}/outputs", response_model=list[api.Output])
def of_job(
    job_id: JobRef,
    request: Request,
    ctx: Ctx,
    every: Annotated[
        bool, Query(alias="all", description="Also files that cannot be downloaded, and further ones of one name.")
    ] = False,
) -> Response:
    """List the files that a job has written, by name. With `all` also further files of one name (other folders, other
    nodes), those that are not here yet or stay on their nodes, and those that the job has removed.
    """
    found = outputs.of_job(ctx.db, job_id, every=every)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)


@router.post("/jobs/{job_id}/outputs/bring", status_code=202, response_model=list[api.Output])
def bring(caller: Submitter, job_id: JobRef, ctx: Ctx) -> Response:
    """Bring the files of a job that stay on its nodes since they are too large. They arrive one after the other."""
    found = outputs.bring(ctx.db, ctx.now_us, caller, job_id)
    return answer(outputs.of_job(ctx.db, found.id, every=True), status=202)


@router.get("/jobs/{job_id}/outputs/{name:file}", response_class=Response)
def file(
    job_id: JobRef,
    name: FilePath,
    request: Request,
    ctx: Ctx,
    root: Annotated[Root | None, Query(description="The folder that it was written in.")] = None,
    node_rank: Annotated[
        int | None, Query(ge=0, lt=MAX_NODES, description="Place of its node among the attempt's nodes.")
    ] = None,
) -> Response:
    """Download a file that a job has written. Ranges are answered, and its hash is the ETag. Of several with one name
    it is the output folder's, and the lowest node rank's, unless `root` and `node_rank` say which.
    """
    sha256 = outputs.file_hash(ctx.db, job_id, name, root=root, node_rank=node_rank)
    return download(request, ctx.store, sha256, name)
