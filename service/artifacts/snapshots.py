"""Code snapshots: a manifest, the blobs that its owner still has to bring, and the commit."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, insert, select, update

from service.artifacts import blobs
from service.db import upsert
from service.db.engine import Database
from service.db.models import Blob, BlobGrant, Job, Snapshot, SnapshotFile
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import BadPathError, NotAHashError, ProblemError, field_problem, not_found
from service.storage import paths
from service.storage.store import is_hash
from torchyard.api import MissingBlobs
from torchyard.ids import JobId, new_id
from torchyard.quantities import format_size
from torchyard.translatable import TranslatableText
from torchyard.wire import FileRef

MAX_FILES = 20_000
MAX_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class _SnapshotState(Record):
    """A snapshot's id and state."""

    id: str
    committed: bool


@dataclass(frozen=True, slots=True)
class _Submitted(Record):
    """The snapshot and submission of a job."""

    spec: StoredSpec


def create(db: Database, user_id: str, files: Sequence[FileRef], now: int) -> MissingBlobs:
    """Register a manifest; the same one of the same user is the same snapshot.

    Raises an ``invalid-request`` problem for a bad path, hash, size or too many files or bytes.
    """
    _check(files)
    digest = _digest(files)
    with db.write() as tx:
        snapshot = _find(tx, user_id, digest) or _insert(tx, user_id, digest, files, now)
        # As young as a new one, so that `unused_code` leaves it to the job that is submitted next.
        _set(tx, snapshot.id, created_us=now)
        return _answer(tx, snapshot, user_id)


def _check(files: Sequence[FileRef]) -> None:
    if not files:
        raise field_problem(
            "files", TranslatableText("no-files", "the folder holds no files: nothing could be run from it")
        )
    if len(files) > MAX_FILES:
        raise field_problem(
            "files",
            TranslatableText(
                "many-files",
                "{count} files are too many, {most} at most: list others in .yardignore",
                count=len(files),
                most=MAX_FILES,
            ),
        )
    paths.check_tree("files", (file.path for file in files))
    for file in files:
        if not is_hash(file.sha256):
            raise NotAHashError(file.sha256)
        if file.size < 0:
            raise BadPathError("files", file.path, TranslatableText("negative-size", "has a negative size"))
    total = sum(file.size for file in files)
    if total > MAX_BYTES:
        raise field_problem(
            "files",
            TranslatableText(
                "large-code",
                "{size} are too much, {most} at most: list data in .yardignore and join it back with link",
                size=format_size(total),
                most=format_size(MAX_BYTES),
            ),
        )


def _mode(file: FileRef) -> int:
    """Return the mode as it is stored: executable or not."""
    return 0o755 if file.mode & 0o100 else 0o644


def _digest(files: Sequence[FileRef]) -> str:
    listing = sorted((file.path, file.sha256, file.size, _mode(file)) for file in files)
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()


def _find(tx: Connection, user_id: str, digest: str) -> _SnapshotState | None:
    query = select(Snapshot.id, Snapshot.committed)
    return _SnapshotState.first(tx.execute(query.where(Snapshot.user_id == user_id, Snapshot.sha256 == digest)))


def _insert(tx: Connection, user_id: str, digest: str, files: Sequence[FileRef], now: int) -> _SnapshotState:
    snapshot_id = new_id("snap")
    size = sum(file.size for file in files)
    values = {"id": snapshot_id, "user_id": user_id, "sha256": digest, "size": size, "created_us": now}
    inserted = tx.execute(upsert.insert(tx, Snapshot).values(**values).on_conflict_do_nothing()).rowcount
    if inserted:
        tx.execute(
            insert(SnapshotFile),
            [
                {"snapshot_id": snapshot_id, "path": f.path, "sha256": f.sha256, "size": f.size, "mode": _mode(f)}
                for f in files
            ],
        )
    found = _find(tx, user_id, digest)
    if found is None:
        raise _removed()
    return found


def _set(tx: Connection, snapshot_id: str, **values: Any) -> None:
    """Change a snapshot; ``unavailable`` if housekeeping has just removed it."""
    if not tx.execute(update(Snapshot).where(Snapshot.id == snapshot_id).values(**values)).rowcount:
        raise _removed()


def _removed() -> ProblemError:
    return ProblemError(
        "unavailable",
        TranslatableText("snapshot-removed", "The same snapshot is being removed: submit it again."),
    )


def _answer(tx: Connection, snapshot: _SnapshotState, user_id: str) -> MissingBlobs:
    missing = [] if snapshot.committed else _missing(tx, snapshot.id, user_id)
    return MissingBlobs(id=snapshot.id, missing=missing, committed=snapshot.committed)


def _missing(tx: Connection, snapshot_id: str, user_id: str) -> list[str]:
    """Return the hashes that the user has yet to upload.

    A blob that only others have uploaded is missing too: a hash alone must not open anybody's file.
    """
    query = select(SnapshotFile.sha256).where(SnapshotFile.snapshot_id == snapshot_id)
    granted = exists().where(BlobGrant.sha256 == SnapshotFile.sha256, BlobGrant.user_id == user_id)
    not_granted = set(tx.scalars(query.where(~granted)))
    return sorted(not_granted | set(blobs.missing(tx, tx.scalars(query.where(granted)))))


def _own(tx: Connection, snapshot_id: str, user_id: str) -> _SnapshotState:
    query = select(Snapshot.id, Snapshot.committed)
    found = _SnapshotState.first(tx.execute(query.where(Snapshot.id == snapshot_id, Snapshot.user_id == user_id)))
    if found is None:
        raise not_found("snapshot", snapshot_id)
    return found


def announced_size(db: Database, snapshot_id: str, user_id: str, sha256: str) -> int:
    """Return the bytes of a blob that the user's snapshot waits for; ``not-found`` if it is not in the manifest."""
    with db.read() as tx:
        _own(tx, snapshot_id, user_id)
        query = select(SnapshotFile.size).where(SnapshotFile.snapshot_id == snapshot_id, SnapshotFile.sha256 == sha256)
        size = tx.scalar(query.limit(1))
    if size is None:
        raise ProblemError(
            "not-found",
            TranslatableText(
                "no-file-of-hash",
                "There is no file with this hash in the snapshot's manifest: {sha256!r}.",
                sha256=sha256[:100],
            ),
        )
    return size


def commit(db: Database, snapshot_id: str, user_id: str) -> MissingBlobs:
    """Make the snapshot usable; a ``conflict`` while blobs are missing or are not as large as announced."""
    with db.write() as tx:
        snapshot = _own(tx, snapshot_id, user_id)
        if not snapshot.committed:
            if missing := _missing(tx, snapshot_id, user_id):
                raise ProblemError(
                    "conflict",
                    TranslatableText(
                        "files-missing",
                        "{count} files are not here yet, the first is {first}: upload it.",
                        count=len(missing),
                        first=missing[0],
                    ),
                )
            _check_sizes(tx, snapshot_id)
            _set(tx, snapshot_id, committed=True)
    return MissingBlobs(id=snapshot_id, missing=[], committed=True)


def _check_sizes(tx: Connection, snapshot_id: str) -> None:
    query = (
        select(SnapshotFile.path)
        .join(Blob, Blob.sha256 == SnapshotFile.sha256)
        .where(SnapshotFile.snapshot_id == snapshot_id, Blob.size != SnapshotFile.size)
    )
    wrong = tx.scalars(query.limit(1)).first()
    if wrong is not None:
        raise BadPathError(
            "files",
            wrong,
            TranslatableText("other-size", "is not as large as the manifest says: take the snapshot again"),
        )


def files(tx: Connection, snapshot_id: str) -> list[FileRef]:
    """Return the manifest of a committed snapshot, sorted; ``not-found`` if there is none."""
    if not tx.scalar(select(Snapshot.committed).where(Snapshot.id == snapshot_id)):
        raise not_found("committed snapshot", snapshot_id)
    query = select(SnapshotFile.path, SnapshotFile.size, SnapshotFile.sha256, SnapshotFile.mode)
    rows = tx.execute(query.where(SnapshotFile.snapshot_id == snapshot_id).order_by(SnapshotFile.path))
    return [FileRef(path=row.path, size=row.size, sha256=row.sha256, mode=row.mode) for row in rows]


def of_job(db: Database, job_id: JobId) -> list[FileRef]:
    """Return the files that a job was submitted with, sorted; none without a snapshot."""
    with db.read() as tx:
        found = _Submitted.first(tx.execute(select(Job.spec).where(Job.id == job_id)))
        return files(tx, found.spec.code) if found is not None and found.spec.code else []


def file_hash(db: Database, job_id: JobId, path: str) -> str:
    """Return the hash of a file that a job was submitted with; ``not-found`` if there is none of this name."""
    found = next((each.sha256 for each in of_job(db, job_id) if each.path == path), None)
    if found is None:
        raise not_found(f"file of job {job_id}", path)
    return found
