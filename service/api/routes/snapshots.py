"""Code snapshots: manifest, the blobs that are missing, commit."""

from typing import Annotated

from fastapi import Depends, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from service.api import openapi
from service.api.answers import answer
from service.api.auth import context, requires
from service.api.downloads import download
from service.api.routes.refs import FilePath, JobRef
from service.api.routes.router import api_router
from service.artifacts import blobs, snapshots, unused_code
from service.context import Context
from service.identity.callers import Caller
from torchyard import api
from torchyard.wire import FileRef

router = api_router("snapshots")
Ctx = Annotated[Context, Depends(context)]
SnapshotPath = Annotated[str, Path(description="Id of the snapshot.")]


@router.post("/snapshots", response_model=api.MissingBlobs)
def create(manifest: api.NewSnapshot, ctx: Ctx, caller: Caller = requires("submit")) -> Response:
    """Register the manifest of a code snapshot. The answer has the hashes of the files that you have yet to upload."""
    return answer(snapshots.create(ctx.db, caller.user_id, manifest.files, ctx.now_us()))


@router.put(
    "/snapshots/{snapshot_id}/blobs/{sha256}",
    status_code=204,
    openapi_extra={"requestBody": {"required": True, "content": {openapi.FILE: {"schema": openapi.BYTES}}}},
)
async def upload(
    snapshot_id: SnapshotPath,
    sha256: Annotated[str, Path(description="SHA-256 of the file.")],
    request: Request,
    ctx: Ctx,
    caller: Caller = requires("submit"),
) -> None:
    """Upload a file of the manifest. It is streamed, and its hash is checked."""
    size = await run_in_threadpool(snapshots.announced_size, ctx.db, snapshot_id, caller.user_id, sha256)
    body = request.stream()
    await blobs.receive(ctx.db, ctx.store, body, sha256, now_us=ctx.now_us, limit=size, user_id=caller.user_id)


@router.post("/snapshots/{snapshot_id}/commit", response_model=api.MissingBlobs)
def commit(snapshot_id: SnapshotPath, ctx: Ctx, caller: Caller = requires("submit")) -> Response:
    """Commit a snapshot, so that a spec can name it as `code`."""
    return answer(snapshots.commit(ctx.db, snapshot_id, caller.user_id))


@router.post("/snapshots/prune", response_model=api.RemovedCode)
def prune(asked: api.PruneSnapshots, ctx: Ctx, caller: Caller = requires("submit")) -> Response:
    """Remove your snapshots that no job is on. Asked for it, also those of discarded jobs alone."""
    return answer(unused_code.remove(ctx.db, ctx.store, caller, ctx.now_us(), discarded=asked.discarded))


@router.get("/jobs/{job_id}/code", response_model=list[FileRef], dependencies=[requires("read")])
def of_job(job_id: JobRef, ctx: Ctx) -> Response:
    """List the files that a job was submitted with, by name. None if it ran without a snapshot."""
    return answer(snapshots.of_job(ctx.db, job_id))


@router.get("/jobs/{job_id}/code/{name:file}", response_class=Response, dependencies=[requires("read")])
def file(job_id: JobRef, name: FilePath, request: Request, ctx: Ctx) -> Response:
    """Download a file that a job was submitted with. Ranges are answered, and its hash is the ETag."""
    return download(request, ctx.store, snapshots.file_hash(ctx.db, job_id, name), name)
