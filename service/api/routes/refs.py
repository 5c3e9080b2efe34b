"""Jobs named in paths: by id, or by the short number that people see."""

from typing import Annotated

from fastapi import Depends

from service.api.auth import context
from service.context import Context
from service.jobs import queries
from torchyard.ids import JobId


def find_job(job_id: str, ctx: Annotated[Context, Depends(context)]) -> JobId:
    """Return the id of a job named by id or number; an id is not looked up, whoever uses it does that."""
    if not job_id.isdigit():
        return JobId(job_id)
    return queries.job_id(ctx.db, job_id)


JobRef = Annotated[JobId, Depends(find_job)]
