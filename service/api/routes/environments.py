"""``/jobs/{id}/environment``: what was installed for a job."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.api.answers import answer, not_modified
from service.api.auth import context
from service.api.routes.refs import JobRef
from service.api.routes.router import api_router
from service.attempts import environments
from service.context import Context
from service.infra.etags import etag
from torchyard import api

router = api_router("jobs", "/jobs")


@router.get("/{job_id}/environment", response_model=api.JobEnvironment)
def show_environment(
    request: Request,
    job_id: JobRef,
    ctx: Annotated[Context, Depends(context)],
    attempt: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Number of the attempt; by default the newest that has told.")
    ] = None,
) -> Response:
    """Get the version of Python and the installed packages that an attempt ran with. Its first node reads them soon
    after the start, by the names of the packages' folders.
    """
    found = environments.of_job(ctx.db, job_id, attempt)
    tag = etag(found)
    return not_modified(request, tag) or answer(found, tag=tag)
