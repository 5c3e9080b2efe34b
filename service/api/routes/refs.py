"""The things that paths name; jobs and checkpoints if the caller may read them: else they are unknown."""

from typing import Annotated

from fastapi import Depends, Path

from service.api.auth import context, requires
from service.artifacts import checkpoints
from service.context import Context
from service.db.records.jobs import JobOwner
from service.identity.callers import Caller
from service.jobs import queries
from torchyard.ids import JobId

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
JobPath = Annotated[str, Path(description="Number or id of the job.")]
CheckpointPath = Annotated[str, Path(description="Id of the checkpoint.")]
FilePath = Annotated[str, Path(description="Path of the file, as the list has it.")]
NodePath = Annotated[str, Path(description="Name of the node.")]
ProjectPath = Annotated[str, Path(description="Name of the project.")]


def find_owner(job_id: JobPath, ctx: Ctx, caller: Reader) -> JobOwner:
    """Return the id of a job named by id or number, and whose it is; ``not-found`` if the caller may not read it."""
    return queries.find_owner(ctx.db, caller, job_id)


OwnedJob = Annotated[JobOwner, Depends(find_owner)]


def find_job(found: OwnedJob) -> JobId:
    """Return the id of a job named by id or number, as `find_owner` does."""
    return found.id


def find_checkpoint(checkpoint_id: CheckpointPath, ctx: Ctx, caller: Reader) -> str:
    """Return the id of a checkpoint; ``not-found`` if the caller may not read its job."""
    checkpoints.check_readable(ctx.db, caller, checkpoint_id)
    return checkpoint_id


JobRef = Annotated[JobId, Depends(find_job)]
CheckpointRef = Annotated[str, Depends(find_checkpoint)]
