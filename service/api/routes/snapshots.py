"""Code snapshots: manifest, the blobs that are missing, commit."""

from typing import Annotated

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from service.api.answers import answer
from service.api.auth import context, requires
from service.api.downloads import download
from service.api.routes.refs import JobRef
from service.api.routes.router import api_router
from service.artifacts import blobs, snapshots
from service.context import Context
from service.identity.callers import Caller
from torchyard import api
from torchyard.wire import FileRef

router = api_router("snapshots")
Ctx = Annotated[Context, Depends(context)]


@router.post("/snapshots", response_model=api.MissingBlobs)
def create(manifest: api.NewSnapshot, ctx: Ctx, caller: Caller = requires("submit")) -> Response:
    """Registers a manifest; answered by the hashes of the files that you have yet to upload."""
    return answer(snapshots.create(ctx.db, caller.user_id, manifest.files, ctx.now_us()))


@router.put("/snapshots/{snapshot_id}/blobs/{sha256}", status_code=204)
async def upload(
    snapshot_id: str, sha256: str, request: Request, ctx: Ctx, caller: Caller = requires("submit")
) -> None:
    """A file of the manifest, streamed; its hash is checked."""
    size = await run_in_threadpool(snapshots.announced_size, ctx.db, snapshot_id, caller.user_id, sha256)
    body = request.stream()
    await blobs.receive(ctx.db, ctx.store, body, sha256, now_us=ctx.now_us, limit=size, user_id=caller.user_id)


@router.post("/snapshots/{snapshot_id}/commit", response_model=api.MissingBlobs)
def commit(snapshot_id: str, ctx: Ctx, caller: Caller = requires("submit")) -> Response:
    """Makes the snapshot usable as `code` of a spec."""
    return answer(snapshots.commit(ctx.db, snapshot_id, caller.user_id))


@router.get("/jobs/{job_id}/code", response_model=list[FileRef], dependencies=[requires("read")])
def of_job(job_id: JobRef, ctx: Ctx) -> Response:
    """The files that the job was submitted with, by name; none if it ran without a snapshot."""
    return answer(snapshots.of_job(ctx.db, job_id))


@router.get("/jobs/{job_id}/code/{name:file}", response_class=Response, dependencies=[requires("read")])
def file(job_id: JobRef, name: str, request: Request, ctx: Ctx) -> Response:
    """A file that the job was submitted with; ranges are answered, and its hash is the ETag."""
    return download(request, ctx.store, snapshots.file_hash(ctx.db, job_id, name), name)
