"""Kept sums of what jobs' files take in the store, against what is found by looking at each job."""

from collections import Counter

from sqlalchemy import select

from service.accounting import storage
from service.db.engine import Database
from service.db.models import Job
from service.storage import retention


def check_sums(db: Database) -> int:
    """Compare the sums of each user and project with the files of their jobs; return the bytes of all jobs."""
    with db.read() as tx:
        kept = [storage.held(tx, "user").files, storage.held(tx, "project").files]
        jobs = tx.execute(select(Job.id, Job.user_id, Job.project)).all()
        sizes = retention.storage(tx, [job.id for job in jobs])
    found = [Counter[str](), Counter[str]()]
    for job in jobs:
        found[0][job.user_id] += sizes[job.id].total
        found[1][job.project] += sizes[job.id].total
    assert [_present(sums) for sums in kept] == [_present(sums) for sums in found]
    return found[0].total()


def _present(sums: Counter[str]) -> dict[str, int]:
    return {owner: size for owner, size in sums.items() if size}
