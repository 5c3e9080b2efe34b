"""Reading what a change of state starts from.

Every change locks the job's row first: on PostgreSQL writers of one job queue up behind it, in the same order
everywhere, so they cannot deadlock. SQLite has one writer and ignores the lock.
"""

from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, case, select

from service.db.models import Attempt, Job, Member
from service.db.records.attempts import AttemptRecord, MemberRecord
from service.db.records.jobs import JobRecord
from service.lifecycle.exceptions import Unknown
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState

#: States in which a node may have processes of an attempt.
CLAIMED = (AttemptState.STARTING, AttemptState.RUNNING, AttemptState.STOPPING, AttemptState.UNREACHABLE)
LIVE = (AttemptState.ASSIGNED, *CLAIMED)

JOBS = cast("Table", Job.__table__)
#: Of a change at `now`; never earlier than it was: a clock that is set back hides no change.
CHANGED_US = case((JOBS.c.changed_us < bindparam("now"), bindparam("now")), else_=JOBS.c.changed_us)

# key_share: rows that refer to the job (log streams, metric series) can still be inserted meanwhile
_LOCK_JOB: Select[Any] = select(Job.__table__).where(Job.id == bindparam("id")).with_for_update(key_share=True)
_JOB_OF: Select[Any] = select(Attempt.job_id).where(Attempt.id == bindparam("id"))
_ATTEMPT: Select[Any] = select(Attempt.__table__).where(Attempt.id == bindparam("id"))


def lock_job(tx: Connection, job_id: JobId) -> JobRecord:
    """Return the job, locked until the transaction ends; `Unknown` if there is none."""
    job = JobRecord.first(tx.execute(_LOCK_JOB, {"id": job_id}))
    if job is None:
        raise Unknown(f"there is no job {job_id}")
    return job


def lock_attempt(tx: Connection, attempt_id: AttemptId) -> tuple[JobRecord, AttemptRecord]:
    """Return the attempt's job and the attempt, both safe from other writers until the transaction ends."""
    job_id = tx.scalar(_JOB_OF, {"id": attempt_id})
    if job_id is None:
        raise Unknown(f"there is no attempt {attempt_id}")
    job = lock_job(tx, job_id)
    return job, AttemptRecord.one(tx.execute(_ATTEMPT, {"id": attempt_id}))


def live_attempt(tx: Connection, job: JobRecord) -> AttemptRecord:
    """Return the newest attempt of a job that is assigned or beyond."""
    query = select(Attempt.__table__).where(Attempt.job_id == job.id, Attempt.number == job.attempt)
    return AttemptRecord.one(tx.execute(query))


def member_on(tx: Connection, attempt_id: AttemptId, node: str | None = None) -> MemberRecord:
    """Return the attempt's member on a node (on its first node if none is named); `Unknown` if it has none there."""
    query = select(Member.__table__).where(Member.attempt_id == attempt_id).order_by(Member.node_rank).limit(1)
    if node is not None:
        query = query.where(Member.node == node)
    member = MemberRecord.first(tx.execute(query))
    if member is None:
        raise Unknown(f"attempt {attempt_id} has no part on node {node}")
    return member


def members_of(tx: Connection, attempt_id: AttemptId) -> list[MemberRecord]:
    """Return the attempt's members by node rank."""
    query = select(Member.__table__).where(Member.attempt_id == attempt_id).order_by(Member.node_rank)
    return MemberRecord.all(tx.execute(query))


def spans_nodes(job: JobRecord) -> bool:
    """Tell whether the job's attempts have several members."""
    return job.spec.nodes > 1


def attempts_on(tx: Connection, node: str, states: tuple[AttemptState, ...]) -> list[AttemptId]:
    """Return the node's attempts in these states whose member there has not ended, by job: the order of locking."""
    query = (
        select(Attempt.id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Member.node == node, Member.ended_us.is_(None), Attempt.state.in_(states))
        .order_by(Attempt.job_id)
    )
    return list(tx.scalars(query))
