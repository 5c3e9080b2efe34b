"""Checkpoints: reported when they are committed on the node, stored once every file is here with its hash."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from sqlalchemy import Connection, insert, select, update

from service import lifecycle
from service.artifacts import blobs, checkpoint_shards
from service.artifacts.checkpoint_shards import CheckpointShard
from service.attempts.memory import AttemptIdentity
from service.db.engine import Database
from service.db.models import Attempt, Checkpoint, CheckpointFile, Job
from service.db.records.artifacts import CheckpointRecord
from service.db.records.jobs import JobOwner, SpecRecord
from service.db.records.record import Record
from service.db.unit_of_work import unit_of
from service.errors import BadPathError, NotAHashError, ProblemError, field_problem, not_found
from service.identity.callers import Caller
from service.identity.roles import may_change
from service.identity.visibility import found_for
from service.infra.times import moment
from service.storage import paths, retention
from service.storage.store import BlobStore, is_hash
from torchyard import api
from torchyard.ids import AttemptId, JobId, new_id
from torchyard.numbers import INT64
from torchyard.quantities import format_size
from torchyard.spec import CheckpointPolicy
from torchyard.translatable import TranslatableText
from torchyard.wire import CheckpointAnswer, CheckpointReport, FileRef, Restore

MAX_FILES = 10_000


@dataclass(frozen=True, slots=True)
class _ListedCheckpoint(CheckpointRecord):
    """A checkpoint with the number of its attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class _OwnedCheckpoint(Record):
    """A checkpoint, with the user and the project of the job that wrote it."""

    job_id: JobId
    step: int
    user_id: str
    project: str


def report(
    db: Database, store: BlobStore, attempt: AttemptIdentity, message: CheckpointReport, node: str, now: int
) -> CheckpointAnswer:
    """Register a checkpoint, and store it once its hashes are given and its blobs are here.

    Of an attempt on several nodes, every node must have done so for its own files. May be sent any number of times. One
    that newer stored checkpoints have made superfluous is dropped at once, so that the node does not bring it for
    nothing.
    """
    shard = CheckpointShard(of=len(attempt.nodes), node_rank=attempt.nodes.index(node))
    _check(message, shard)
    with db.unit_of_work(now) as unit:
        answer, doomed = _report(unit.tx, attempt, message, shard, now)
        unit.tell(f"job:{attempt.job_id}")
        unit.wake_scheduler()  # a job may wait to start again from it
    blobs.collect(db, store, doomed)
    return answer


def _report(
    tx: Connection, attempt: AttemptIdentity, message: CheckpointReport, shard: CheckpointShard, now: int
) -> tuple[CheckpointAnswer, list[str]]:
    job = lifecycle.lock_job(tx, attempt.job_id)
    found = _find(tx, attempt, message.name) or _insert(tx, attempt, message, now)
    missing: list[str] = []
    doomed: list[str] = []
    hashed = all(file.sha256 for file in message.files)
    if found.state == "committed" and (hashed or checkpoint_shards.is_new(tx, found.id, shard)):
        checkpoint_shards.set_files(tx, found.id, message, shard)
    if found.state == "committed" and hashed:
        policy = job.spec.checkpoint
        if _comes_too_late(tx, attempt, found.id, policy):
            doomed = retention.mark_deleted(tx, [found.id], now)
        elif not (missing := blobs.missing(tx, (str(file.sha256) for file in message.files))) and (
            checkpoint_shards.all_stored(tx, found.id, shard)
        ):
            _store(tx, attempt, found, now)
            doomed = retention.enforce(tx, attempt.job_id, policy, now)
    return CheckpointAnswer(checkpoint=found.id, missing=missing, remove=_removable(tx, attempt.id)), doomed


def _check(message: CheckpointReport, shard: CheckpointShard) -> None:
    # A node whose ranks wrote nothing says so: nobody could tell that from a shard that is still on its way.
    if (not message.files and shard.node_rank == 0) or len(message.files) > MAX_FILES:
        raise field_problem("files", f"must be 1 to {MAX_FILES} files")
    if not (0 <= message.step < INT64.stop and 0 <= message.created_us < INT64.stop):
        raise field_problem("step", "step and created_us must not be negative, and fit into 64 bits")
    paths.check("name", message.name)
    paths.check_tree("files", (file.path for file in message.files))
    for file in message.files:
        if not 0 <= file.size < 2**62 // MAX_FILES:
            raise BadPathError("files", file.path, "has a size that no file has")
        if file.sha256 is not None and not is_hash(file.sha256):
            raise NotAHashError(file.sha256)


def _find(tx: Connection, attempt: AttemptIdentity, name: str) -> CheckpointRecord | None:
    query = select(Checkpoint.__table__).where(Checkpoint.attempt_id == attempt.id, Checkpoint.name == name)
    return CheckpointRecord.first(tx.execute(query))


def _insert(tx: Connection, attempt: AttemptIdentity, message: CheckpointReport, now: int) -> CheckpointRecord:
    checkpoint_id = new_id("ckpt")
    tx.execute(
        insert(Checkpoint).values(
            id=checkpoint_id,
            job_id=attempt.job_id,
            attempt_id=attempt.id,
            name=message.name,
            step=message.step,
            state="committed",
            metrics=checkpoint_shards.metrics_of(message),
            size=sum(file.size for file in message.files),
            created_us=message.created_us,
        )
    )
    tx.execute(update(Job).where(Job.id == attempt.job_id).values(unsaved=None, unsaved_parts=None))
    _tell(tx, attempt, checkpoint_id, message.step, f"checkpoint of step {message.step} written", now, done="written")
    return CheckpointRecord.one(tx.execute(select(Checkpoint.__table__).where(Checkpoint.id == checkpoint_id)))


def _tell(
    tx: Connection, attempt: AttemptIdentity, checkpoint_id: str, step: int, message: str, now: int, **done: str
) -> None:
    data = {"checkpoint": checkpoint_id, "step": step, **done}
    lifecycle.insert_event(tx, attempt.job_id, "checkpoint", message, attempt=attempt.number, data=data, now=now)


def _comes_too_late(tx: Connection, attempt: AttemptIdentity, checkpoint_id: str, policy: CheckpointPolicy) -> bool:
    known = retention.checkpoints_of(tx, attempt.job_id)
    if_stored = [_as_stored(kept) if kept.id == checkpoint_id else kept for kept in known]
    dropped = retention.prunable(if_stored, policy, retention.pinned(tx, attempt.job_id))
    return any(kept.id == checkpoint_id for kept in dropped)


def _as_stored(kept: retention.RetentionCandidate) -> retention.RetentionCandidate:
    return replace(kept, state="stored")


def _store(tx: Connection, attempt: AttemptIdentity, checkpoint: CheckpointRecord, now: int) -> None:
    stored = update(Checkpoint).where(Checkpoint.id == checkpoint.id).values(state="stored").returning(Checkpoint.size)
    size = tx.scalar(stored) or 0
    unit_of(tx).count_stored(attempt.job_id, size)
    message = f"checkpoint of step {checkpoint.step} stored ({format_size(size)})"
    _tell(tx, attempt, checkpoint.id, checkpoint.step, message, now, done="stored", size=format_size(size))


def _removable(tx: Connection, attempt_id: AttemptId) -> list[str]:
    """Return the folders that their node may remove: their checkpoints are in the store, or deleted."""
    query = select(Checkpoint.name).where(Checkpoint.attempt_id == attempt_id, Checkpoint.state != "committed")
    return list(tx.scalars(query.order_by(Checkpoint.name)))


def of_job(db: Database, job_id: JobId) -> list[api.Checkpoint]:
    """Return the job's checkpoints, the newest last; ``not-found`` for an unknown job."""
    with db.read() as tx:
        return _of_job(tx, job_id)


def _of_job(tx: Connection, job_id: JobId) -> list[api.Checkpoint]:
    job = SpecRecord.first(tx.execute(select(Job.spec).where(Job.id == job_id)))
    if job is None:
        raise not_found("job", job_id)
    best = retention.best(retention.checkpoints_of(tx, job_id), job.spec.checkpoint.keep_best)
    pinned = retention.pinned(tx, job_id)
    query = (
        select(Checkpoint.__table__, Attempt.number.label("attempt"))
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(Checkpoint.job_id == job_id, Checkpoint.state != "deleted")
        .order_by(Attempt.number, Checkpoint.step)
    )
    found = _ListedCheckpoint.all(tx.execute(query))
    files = _files(tx, [each.id for each in found])
    return [_resource(each, files[each.id], best=each.id == best, pinned=each.id in pinned) for each in found]


def _files(tx: Connection, ids: Sequence[str]) -> dict[str, list[api.CheckpointFileInfo]]:
    query = select(CheckpointFile.__table__).where(CheckpointFile.checkpoint_id.in_(ids)).order_by(CheckpointFile.path)
    files = defaultdict(list)
    for row in tx.execute(query):
        files[row.checkpoint_id].append(api.CheckpointFileInfo(name=row.path, size=row.size, sha256=row.sha256))
    return files


def _resource(
    checkpoint: _ListedCheckpoint, files: list[api.CheckpointFileInfo], *, best: bool, pinned: bool
) -> api.Checkpoint:
    return api.Checkpoint(
        id=checkpoint.id,
        job=checkpoint.job_id,
        attempt=checkpoint.attempt,
        step=checkpoint.step,
        state=cast("Literal['committed', 'stored']", checkpoint.state),
        best=best,
        pinned=pinned,
        created_at=moment(checkpoint.created_us),
        size=checkpoint.size,
        metrics=checkpoint.metrics,
        files=files,
    )


def check_readable(db: Database, caller: Caller, checkpoint_id: str) -> None:
    """Raise ``not-found`` unless there is such a checkpoint, of a job that the caller may read."""
    query = select(*JobOwner.columns(Job)).join(Checkpoint, Checkpoint.job_id == Job.id)
    with db.read() as tx:
        found = JobOwner.first(tx.execute(query.where(Checkpoint.id == checkpoint_id)))
    if found_for(caller, found) is None:
        raise not_found("checkpoint", checkpoint_id)


def get(db: Database, checkpoint_id: str) -> api.Checkpoint:
    """Return one checkpoint; ``not-found`` for an unknown or deleted one."""
    with db.read() as tx:
        job_id = tx.scalar(select(Checkpoint.job_id).where(Checkpoint.id == checkpoint_id))
        found = _of_job(tx, job_id) if job_id else []
    for checkpoint in found:
        if checkpoint.id == checkpoint_id:
            return checkpoint
    raise not_found("checkpoint", checkpoint_id)


def file_hash(db: Database, checkpoint_id: str, name: str) -> str:
    """Return the hash of a file of a stored checkpoint; ``not-found`` for any other name."""
    query = (
        select(CheckpointFile.sha256)
        .join(Checkpoint, Checkpoint.id == CheckpointFile.checkpoint_id)
        .where(Checkpoint.id == checkpoint_id, CheckpointFile.path == name, Checkpoint.state == "stored")
    )
    with db.read() as tx:
        sha256 = tx.scalar(query)
    if sha256 is None:
        raise not_found(f"file in stored checkpoint {checkpoint_id[:40]!r} named", name)
    return sha256


def delete(db: Database, store: BlobStore, checkpoint_id: str, caller: Caller, now: int) -> None:
    """Delete a checkpoint for its job's owner or an administrator; ``conflict`` while a job needs it."""
    with db.unit_of_work(now) as unit:
        tx = unit.tx
        owned = _owned(tx, checkpoint_id, caller)
        lifecycle.lock_job(tx, owned.job_id)
        if checkpoint_id in retention.pinned(tx, owned.job_id):
            raise ProblemError(
                "conflict",
                TranslatableText(
                    "checkpoint-needed",
                    "A job that is not over would start from this checkpoint: cancel that job, or wait for its next "
                    "one.",
                ),
            )
        hashes = retention.mark_deleted(tx, [checkpoint_id], now)
        data = {"checkpoint": checkpoint_id, "step": owned.step, "done": "deleted"}
        message = f"checkpoint of step {owned.step} deleted"
        lifecycle.insert_event(tx, owned.job_id, "checkpoint", message, actor=caller.name, data=data, now=now)
        unit.tell(f"job:{owned.job_id}")
    blobs.collect(db, store, hashes)


def _owned(tx: Connection, checkpoint_id: str, caller: Caller) -> _OwnedCheckpoint:
    query = (
        select(Checkpoint.job_id, Checkpoint.step, Job.user_id, Job.project)
        .join(Job, Job.id == Checkpoint.job_id)
        .where(Checkpoint.id == checkpoint_id, Checkpoint.state != "deleted")
    )
    found = _OwnedCheckpoint.first(tx.execute(query))
    if found is None:
        raise not_found("checkpoint", checkpoint_id)
    may_change(caller, found)
    return found


def restore(tx: Connection, checkpoint_id: str) -> Restore:
    """Return the files that a node needs to resume from a checkpoint; ``not-found`` if it was deleted."""
    query = select(Checkpoint.__table__).where(Checkpoint.id == checkpoint_id, Checkpoint.state != "deleted")
    found = CheckpointRecord.first(tx.execute(query))
    if found is None:
        raise not_found("checkpoint", checkpoint_id)
    listed = _files(tx, [found.id])[found.id]
    files = [FileRef(path=file.name, size=file.size, sha256=file.sha256 or "") for file in listed]
    return Restore(checkpoint=found.id, step=found.step, files=files, attempt=found.attempt_id, name=found.name)
