"""Names by which the queue and the timeline speak of jobs."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from service.db.chunks import chunks
from service.db.models import Job, User
from service.db.records.record import Record
from torchyard.ids import JobId


@dataclass(frozen=True, slots=True)
class JobTitle(Record):
    """Columns by which messages name a job, and the name of its owner."""

    id: JobId
    number: int
    name: str
    user_id: str
    user: str
    project: str


def load(tx: Connection, jobs: Iterable[JobId]) -> dict[JobId, JobTitle]:
    """Return the titles of the jobs, by id; ids of no job are left out."""
    query = select(*JobTitle.columns(Job, User.name.label("user"))).join(User, User.id == Job.user_id)
    found: dict[JobId, JobTitle] = {}
    for some in chunks(sorted(set(jobs))):
        found |= {row.id: row for row in JobTitle.each(tx.execute(query.where(Job.id.in_(some))))}
    return found
