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
_JOB_OF = select(Attempt.job_id).where(Attempt.id == bindparam("attempt")).scalar_subquery()
_LOCK_JOB_OF: Select[Any] = select(Job.__table__).where(Job.id == _JOB_OF).with_for_update(key_share=True)
_ATTEMPT: Select[Any] = select(Attempt.__table__).where(Attempt.id == bindparam("id"))
_ATTEMPT_NUMBERED: Select[Any] = select(Attempt.__table__).where(
    Attempt.job_id == bindparam("job"), Attempt.number == bindparam("number")
)
_MEMBERS: Select[Any] = (
    select(Member.__table__).where(Member.attempt_id == bindparam("attempt")).order_by(Member.node_rank)
)
_MEMBER_ON: Select[Any] = _MEMBERS.where(Member.node == bindparam("node")).limit(1)
_FIRST_MEMBER: Select[Any] = _MEMBERS.limit(1)
_ATTEMPTS_ON: Select[Any] = (
    select(Attempt.id)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(
        Member.node == bindparam("node"),
        Member.ended_us.is_(None),
        Attempt.state.in_(bindparam("states", expanding=True)),
    )
    .order_by(Attempt.job_id)
)


def lock_job(tx: Connection, job_id: JobId) -> JobRecord:
    """Return the job, locked until the transaction ends; `Unknown` if there is none."""
    job = JobRecord.first(tx.execute(_LOCK_JOB, {"id": job_id}))
    if job is None:
        raise Unknown(f"there is no job {job_id}")
    return job


def lock_attempt(tx: Connection, attempt_id: AttemptId) -> tuple[JobRecord, AttemptRecord]:
    """Return the attempt's job and the attempt, both safe from other writers until the transaction ends."""
    job = JobRecord.first(tx.execute(_LOCK_JOB_OF, {"attempt": attempt_id}))
    if job is None:
        raise Unknown(f"there is no attempt {attempt_id}")
    return job, AttemptRecord.one(tx.execute(_ATTEMPT, {"id": attempt_id}))


def live_attempt(tx: Connection, job: JobRecord) -> AttemptRecord:
    """Return the newest attempt of a job that is assigned or beyond."""
    return AttemptRecord.one(tx.execute(_ATTEMPT_NUMBERED, {"job": job.id, "number": job.attempt}))


def member_on(tx: Connection, attempt_id: AttemptId, node: str | None = None) -> MemberRecord:
    """Return the attempt's member on a node (on its first node if none is named); `Unknown` if it has none there."""
    query = _FIRST_MEMBER if node is None else _MEMBER_ON
    member = MemberRecord.first(tx.execute(query, {"attempt": attempt_id, "node": node}))
    if member is None:
        raise Unknown(f"attempt {attempt_id} has no part on node {node}")
    return member


def members_of(tx: Connection, attempt_id: AttemptId) -> list[MemberRecord]:
    """Return the attempt's members by node rank."""
    return MemberRecord.all(tx.execute(_MEMBERS, {"attempt": attempt_id}))


def spans_nodes(job: JobRecord) -> bool:
    """Tell whether the job's attempts have several members."""
    return job.spec.nodes > 1


def attempts_on(tx: Connection, node: str, states: tuple[AttemptState, ...]) -> list[AttemptId]:
    """Return the node's attempts in these states whose member there has not ended, by job: the order of locking."""
    return list(tx.scalars(_ATTEMPTS_ON, {"node": node, "states": states}))
