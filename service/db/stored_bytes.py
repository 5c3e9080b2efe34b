"""Sums of what jobs' files take in the artifact store, kept for each user in each project."""

from collections import Counter

from sqlalchemy import Connection, bindparam, func, select, union_all

from service.db.chunks import chunks
from service.db.models import Attempt, Checkpoint, Job, LogStream, Output, StoredBytes
from service.db.upsert import Insert, Into, made_once
from torchyard.ids import JobId

#: A user's id and a project's name.
Owner = tuple[str, str]

_OWNERS = select(Job.id, Job.user_id, Job.project).where(Job.id.in_(bindparam("jobs", expanding=True)))


@made_once
def _grow(into: Into) -> Insert:
    add = into(StoredBytes)
    grown = StoredBytes.size + add.excluded.size
    return add.on_conflict_do_update(index_elements=["user_id", "project"], set_={"size": grown})


def add(tx: Connection, changes: Counter[JobId]) -> None:
    """Add to the sums by how many bytes the files of each job have grown; below 0: shrunk."""
    owners = Counter[Owner]()
    for some in chunks([job for job, size in changes.items() if size]):
        for job, user, project in tx.execute(_OWNERS, {"jobs": some}):
            owners[user, project] += changes[job]
    grow(tx, owners)


def grow(tx: Connection, owners: Counter[Owner]) -> None:
    """Add to the sums of these owners."""
    # In order, so that transactions that overlap do not wait for each other in a circle.
    for (user, project), size in sorted(owners.items()):
        tx.execute(_grow(tx), {"user_id": user, "project": project, "size": size})


def differences(tx: Connection) -> Counter[Owner]:
    """Return by how many bytes files are more than their owner's sum, or less; owners whose sum is right are absent."""
    files = union_all(
        select(Checkpoint.job_id, Checkpoint.size).where(Checkpoint.state == "stored"),
        select(Output.job_id, Output.size).where(Output.state == "stored"),
        select(Attempt.job_id, LogStream.size).join(LogStream, LogStream.attempt_id == Attempt.id),
    ).subquery()
    by_owner = select(Job.user_id, Job.project, func.sum(files.c.size)).join(files, files.c.job_id == Job.id)
    found = Counter[Owner]()
    for user, project, size in tx.execute(by_owner.group_by(Job.user_id, Job.project)):
        found[user, project] = int(size)
    for user, project, size in tx.execute(select(StoredBytes.user_id, StoredBytes.project, StoredBytes.size)):
        found[user, project] -= size
    return Counter({owner: size for owner, size in found.items() if size})
