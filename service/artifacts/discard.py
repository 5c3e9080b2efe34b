"""Delete the files of jobs that have ended: on request, or at an age that the administrator has set.

Logs, metrics, checkpoints, outputs and stacks go. What the job was and how it ended stays: spec, code, events, GPU
time, and the last value of each metric. So it can be run again.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, or_, select
from sqlalchemy.orm import aliased

from service import lifecycle
from service.artifacts import blobs, housekeeping
from service.db.chunks import chunks
from service.db.engine import Database
from service.db.models import (
    Attempt,
    Checkpoint,
    Job,
    LogStream,
    Member,
    MetricPoint,
    MetricRollup,
    MetricSeries,
    Node,
    Stacks,
    Tag,
)
from service.db.records.jobs import JobVersion
from service.identity.callers import Caller
from service.infra.times import Clock
from service.jobs import change
from service.storage import retention
from service.storage.store import BlobStore
from torchyard.ids import JobId
from torchyard.quantities import format_duration, format_size
from torchyard.spec import KEEP
from torchyard.states import JOB_FINAL
from torchyard.translatable import TranslatableText

#: Jobs whose files go in one round of housekeeping.
_AT_ONCE = 200
#: Points of metrics that go in one transaction: others write as well.
_POINTS = 50_000


def discard(db: Database, store: BlobStore, clock: Clock, caller: Caller, ref: str) -> JobVersion:
    """Delete the files of a job at the request of its owner; return its version. Asking twice is fine.

    ``not-acceptable-state`` while it has not ended, its files still arrive, or another job starts from them.
    """
    hashes: list[str] = []

    def mark(tx: Connection, job_id: JobId, actor: str | None, now: int) -> None:
        hashes.extend(_mark(tx, job_id, now, actor=actor))

    changed = change.act(db, clock, caller, ref, mark)
    blobs.collect(db, store, hashes)  # first: on a full disk the points need the room that files give back
    _remove(db, store, [changed.id])
    return changed


def sweep(db: Database, store: BlobStore, now: int, keep_s: int | None) -> None:
    """Delete the files of jobs that ended more than `keep_s` ago, and those that a killed service left half deleted."""
    if keep_s is not None:
        _expire(db, store, now, keep_s)
    with db.read() as tx:
        lately = list(tx.scalars(select(Job.id).where(Job.discarded_us > now - housekeeping.DAY_US)))
    _remove(db, store, lately)


def _expire(db: Database, store: BlobStore, now: int, keep_s: int) -> None:
    kept = exists().where(Tag.job_id == Job.id, Tag.tag == KEEP)
    query = (
        select(Job.id)
        .where(Job.state.in_(JOB_FINAL), Job.discarded_us.is_(None), Job.ended_us < now - keep_s * 1_000_000, ~kept)
        .where(~_started_from(Job.id), ~_carried_from(Job.id), ~_arriving(Job.id), ~_compared(Job.group_id))
        .order_by(Job.ended_us)
        .limit(_AT_ONCE)
    )
    with db.read() as tx:
        old = list(tx.scalars(query))
    for job_id in old:
        try:
            with db.unit_of_work(now) as unit:
                hashes = _mark(unit.tx, job_id, now, why=f", as of all jobs that ended {format_duration(keep_s)} ago")
        except lifecycle.Conflict:  # somebody has begun to need it just now
            continue
        blobs.collect(db, store, hashes)


def _mark(tx: Connection, job_id: JobId, now: int, *, actor: str | None = None, why: str = "") -> list[str]:
    """Forget the files; return hashes to `blobs.collect` after the commit. Logs and points go with `_remove`."""
    job = lifecycle.lock_job(tx, job_id)
    if job.state not in JOB_FINAL:
        raise lifecycle.Conflict(
            TranslatableText(
                "discard-not-over",
                "job {number} is {state}: cancel it first, or wait for its end",
                number=job.number,
                state=job.state,
            )
        )
    if tx.scalar(select(_arriving(job_id))):
        raise lifecycle.Conflict(
            TranslatableText(
                "discard-arriving",
                "files of job {number} still arrive from its node: try again in a minute",
                number=job.number,
            )
        )
    if job.group_id is not None and tx.scalar(select(_compared(job.group_id))):
        raise lifecycle.Conflict(
            TranslatableText(
                "discard-compared",
                "job {number} is what other trials of its sweep are compared with: wait for them",
                number=job.number,
            )
        )
    if retention.pinned(tx, job_id):
        raise lifecycle.Conflict(
            TranslatableText(
                "discard-started-from",
                "a job that has not ended starts from a checkpoint of job {number}: cancel that, or wait for a "
                "checkpoint of its own",
                number=job.number,
            )
        )
    if tx.scalar(select(_carried_from(job_id))):
        raise lifecycle.Conflict(
            TranslatableText(
                "discard-carried-from",
                "a job that has not ended began with the files of job {number}: cancel that, or wait for its end",
                number=job.number,
            )
        )
    if job.discarded_us is None:
        size = retention.storage(tx, [job_id])[job_id].total
        words = f"logs, metrics, checkpoints and outputs discarded ({format_size(size)}){why}"
        data = {"bytes": size, "size": format_size(size), "why": why}
        note = lifecycle.Note(kind="discarded", message=words, actor=actor, data=data)
        lifecycle.change_job(tx, job_id, note, now, discarded_us=now)
    return _forget(tx, job_id, now)


def _started_from(job_id: Any) -> ColumnElement[bool]:
    """Condition that a job which has not ended started from one of its checkpoints; `retention.pinned` looks closer."""
    other = aliased(Job)
    started = (Checkpoint.job_id == job_id, other.restore_checkpoint == Checkpoint.id)
    return exists().where(*started, other.state.not_in(JOB_FINAL))


def _carried_from(job_id: Any) -> ColumnElement[bool]:
    """Condition that a job which has not ended begins with its files: each of its attempts may need them."""
    other = aliased(Job)
    return exists().where(other.carry_from == job_id, other.state.not_in(JOB_FINAL))


def _compared(group_id: Any) -> ColumnElement[bool]:
    """Condition that trials of its sweep have not ended: their results are compared with its metrics."""
    other = aliased(Job)
    return exists().where(other.group_id == group_id, other.state.not_in(JOB_FINAL))


def _arriving(job_id: Any) -> ColumnElement[bool]:
    """Condition that a reachable node has yet to bring files."""
    return exists().where(
        Attempt.job_id == job_id,
        Attempt.claimed_us.is_not(None),
        Member.attempt_id == Attempt.id,
        ~Member.settled,
        Node.name == Member.node,
        ~Node.unreachable,
    )


def _forget(tx: Connection, job_id: JobId, now: int) -> list[str]:
    hashes = retention.mark_deleted(tx, [kept.id for kept in retention.checkpoints_of(tx, job_id)], now)
    hashes += retention.forget_outputs(tx, job_id)
    retention.forget_logs(tx, job_id)
    attempts = select(Attempt.id).where(Attempt.job_id == job_id).scalar_subquery()
    tx.execute(delete(Stacks).where(Stacks.attempt_id.in_(attempts)))
    return hashes


def _remove(db: Database, store: BlobStore, jobs: Sequence[JobId]) -> None:
    """Remove logs and points that no row refers to any more; may be repeated."""
    for some in chunks(jobs):
        with db.read() as tx:
            # A node that was lost may have come back since, and brought its logs.
            has_logs = exists().where(LogStream.attempt_id == Attempt.id)
            attempts = list(tx.scalars(select(Attempt.id).where(Attempt.job_id.in_(some), ~has_logs)))
            left = [exists().where(table.series_id == MetricSeries.id) for table in (MetricPoint, MetricRollup)]
            series = list(tx.scalars(select(MetricSeries.id).where(MetricSeries.job_id.in_(some), or_(*left))))
        for attempt in attempts:
            store.delete_logs(attempt)
        while series:
            with db.write() as tx:
                _remove_some(tx, series)


def _remove_some(tx: Connection, series: list[int]) -> None:
    """Delete one batch of points, of the last series first, and the rollups of series without points, which are removed
    from the list.
    """
    left = _POINTS
    while series and left > 0:
        of_it = MetricPoint.series_id == series[-1]
        last = tx.scalar(select(MetricPoint.seq).where(of_it).order_by(MetricPoint.seq).offset(left - 1).limit(1))
        some = of_it if last is None else of_it & (MetricPoint.seq <= last)
        left -= tx.execute(delete(MetricPoint).where(some)).rowcount
        if last is None:
            tx.execute(delete(MetricRollup).where(MetricRollup.series_id == series[-1]))
            series.pop()
