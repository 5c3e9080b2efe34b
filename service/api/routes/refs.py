"""Jobs named in paths: by id, or by the short number that people see."""

from typing import Annotated

from fastapi import Depends

from service.api.auth import context
from service.context import Context
from service.jobs import queries


def find_job(job_id: str, ctx: Annotated[Context, Depends(context)]) -> str:
    """The id of a job named by id or number; an id is not looked up, whoever uses it does that."""
    if not job_id.isdigit():
        return job_id
    return queries.job_id(ctx.db, job_id)


JobId = Annotated[str, Depends(find_job)]
