"""Retention: which files are kept or forgotten, and how many bytes each job holds in the store."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy.orm import aliased

from service.db.models import (
    Attempt,
    Checkpoint,
    CheckpointFile,
    Job,
    LogStream,
    LogTime,
    Output,
)
from service.db.records.record import Record
from service.db.unit_of_work import unit_of
from torchyard.api import Storage
from torchyard.ids import AttemptId, JobId
from torchyard.spec import CheckpointPolicy, KeepBest
from torchyard.states import JOB_FINAL, JobState

#: States in which the next attempt has yet to read the checkpoint that the job starts from.
_WAITING = (JobState.QUEUED, JobState.ASSIGNED, JobState.STARTING)


@dataclass(frozen=True, slots=True)
class RetentionCandidate(Record):
    """A checkpoint of a job, as the retention policy judges it."""

    id: str
    name: str
    state: str
    attempt_id: AttemptId
    attempt: int
    step: int
    metrics: dict[str, Any]

    @property
    def age(self) -> tuple[int, int]:
        """Sort key, the oldest first: a later attempt began at a step that counts again from there."""
        return self.attempt, self.step


def checkpoints_of(tx: Connection, job_id: JobId) -> list[RetentionCandidate]:
    """The job's checkpoints that are not deleted, the oldest first."""
    query = (
        select(
            Checkpoint.id,
            Checkpoint.name,
            Checkpoint.state,
            Checkpoint.attempt_id,
            Attempt.number.label("attempt"),
            Checkpoint.step,
            Checkpoint.metrics,
        )
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(Checkpoint.job_id == job_id, Checkpoint.state != "deleted")
        .order_by(Attempt.number, Checkpoint.step)
    )
    return RetentionCandidate.all(tx.execute(query))


def best(checkpoints: Sequence[RetentionCandidate], policy: KeepBest | None) -> str | None:
    """Id of the checkpoint with the best finite value of the metric, the newest of equals; None without one."""
    if policy is None:
        return None
    sign = 1 if policy.mode == "max" else -1
    valued = [(sign * value, kept.age, kept.id) for kept in checkpoints if (value := _value(kept, policy)) is not None]
    return max(valued)[2] if valued else None


def _value(kept: RetentionCandidate, policy: KeepBest) -> float | None:
    value = kept.metrics.get(policy.metric)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def prunable(
    checkpoints: Sequence[RetentionCandidate], policy: CheckpointPolicy, pinned: Collection[str]
) -> list[RetentionCandidate]:
    """Stored checkpoints that the policy does not keep; the newest stored one is always kept."""
    stored = sorted((kept for kept in checkpoints if kept.state == "stored"), key=lambda kept: kept.age)
    keep = {kept.id for kept in stored[-policy.keep_last :]} | {best(stored, policy.keep_best)} | set(pinned)
    return [kept for kept in stored if kept.id not in keep]


def pinned(tx: Connection, job_id: JobId) -> set[str]:
    """Ids of the job's checkpoints that some job has yet to start from, or would have to start again from."""
    own = aliased(Checkpoint)
    has_own = exists().where(own.job_id == Job.id, own.state == "stored")
    needed = (
        select(Checkpoint.id)
        .join(Job, Job.restore_checkpoint == Checkpoint.id)
        .where(Checkpoint.job_id == job_id)
        .where(or_(Job.state.in_(_WAITING), and_(Job.state.not_in(JOB_FINAL), ~has_own)))
    )
    return {*tx.scalars(needed), *_only_verified(tx, job_id)}


def _only_verified(tx: Connection, job_id: JobId) -> list[str]:
    query = (
        select(Checkpoint.id)
        .join(Job, Job.id == Checkpoint.job_id)
        .where(Checkpoint.job_id == job_id, Checkpoint.state == "stored", Job.state.not_in(JOB_FINAL))
        .limit(2)
    )
    ids = list(tx.scalars(query))
    return ids if len(ids) == 1 else []


def enforce(tx: Connection, job_id: JobId, policy: CheckpointPolicy, now: int) -> list[str]:
    """Mark checkpoints that the policy does not keep as deleted; return hashes to `blobs.collect` after the commit."""
    doomed = prunable(checkpoints_of(tx, job_id), policy, pinned(tx, job_id))
    return mark_deleted(tx, [kept.id for kept in doomed], now)


def mark_deleted(tx: Connection, ids: Sequence[str], now: int) -> list[str]:
    """Mark checkpoints as deleted; return hashes to `blobs.collect` after the commit."""
    if not ids:
        return []
    known = select(Checkpoint.job_id, Checkpoint.size, Checkpoint.state).where(Checkpoint.id.in_(ids))
    # Locked first: one that another transaction stores or deletes meanwhile counts as what it is then.
    for job_id, size, state in tx.execute(known.order_by(Checkpoint.id).with_for_update()).all():
        unit_of(tx).count_stored(job_id, -size if state == "stored" else 0)
    tx.execute(update(Checkpoint).where(Checkpoint.id.in_(ids)).values(state="deleted", deleted_us=now))
    query = select(CheckpointFile.sha256).where(CheckpointFile.checkpoint_id.in_(ids))
    return [sha256 for sha256 in tx.scalars(query.distinct()) if sha256 is not None]


def forget_outputs(tx: Connection, job_id: JobId, attempt_id: AttemptId | None = None) -> list[str]:
    """Delete the files of a job, or those of one attempt; return hashes to `blobs.collect` after the commit."""
    of_attempt = true() if attempt_id is None else Output.attempt_id == attempt_id
    deleted = delete(Output).where(Output.job_id == job_id, of_attempt)
    gone = tx.execute(deleted.returning(Output.size, Output.sha256, Output.state)).all()
    unit_of(tx).count_stored(job_id, -sum(row.size for row in gone if row.state == "stored"))
    return [row.sha256 for row in gone]


def forget_logs(tx: Connection, job_id: JobId) -> None:
    """Delete what is known of the logs of a job."""
    attempts = select(Attempt.id).where(Attempt.job_id == job_id).scalar_subquery()
    gone = tx.execute(delete(LogStream).where(LogStream.attempt_id.in_(attempts)).returning(LogStream.size))
    unit_of(tx).count_stored(job_id, -sum(gone.scalars()))
    tx.execute(delete(LogTime).where(LogTime.attempt_id.in_(attempts)))


def _sum(kind: str, job: Any, size: Any, where: Any) -> Select[Any]:
    of_jobs = job.in_(bindparam("jobs", expanding=True))
    return select(literal_column(f"'{kind}'").label("kind"), job, func.sum(size)).where(of_jobs, where).group_by(job)


_STORED = case((Checkpoint.state == "stored", Checkpoint.size), else_=0)
_SUMS = union_all(
    _sum("checkpoints", Checkpoint.job_id, _STORED, true()),
    _sum("outputs", Output.job_id, Output.size, Output.state == "stored"),
    _sum("logs", Attempt.job_id, LogStream.size, LogStream.attempt_id == Attempt.id),
)


def storage(tx: Connection, job_ids: Sequence[JobId]) -> dict[JobId, Storage]:
    """Bytes that each of the jobs holds in the artifact store (files that jobs share count for each)."""
    sums: dict[JobId, dict[str, int]] = {job_id: {} for job_id in job_ids}
    for kind, job_id, size in tx.execute(_SUMS, {"jobs": job_ids}):
        sums[job_id][kind] = int(size)
    return {
        job_id: Storage(
            checkpoints=found.get("checkpoints", 0),
            outputs=found.get("outputs", 0),
            logs=found.get("logs", 0),
            saved="checkpoints" in found,
        )
        for job_id, found in sums.items()
    }
