"""Remove snapshots of code that no job of theirs needs any more, at the request of their owner."""

from sqlalchemy import Connection, delete, select

from service.artifacts import blobs
from service.db.chunks import chunks
from service.db.engine import Database
from service.db.models import Job, Snapshot, SnapshotFile
from service.identity import audit
from service.identity.callers import Caller
from service.storage.store import BlobStore
from torchyard.api import RemovedCode
from torchyard.quantities import SECONDS

#: A snapshot is uploaded before its job is submitted: so young a one counts as used.
YOUNG_US = SECONDS["h"] * 1_000_000


def remove(db: Database, store: BlobStore, caller: Caller, now: int, *, discarded: bool) -> RemovedCode:
    """Remove the caller's snapshots that no job is on; with `discarded`, those of discarded jobs alone as well."""
    with db.write() as tx:
        own = {
            row.id: row.size
            for row in tx.execute(
                select(Snapshot.id, Snapshot.size)
                .where(Snapshot.user_id == caller.user_id, Snapshot.committed, Snapshot.created_us < now - YOUNG_US)
                .order_by(Snapshot.id)
                .with_for_update()  # a submission that names one of them waits, and finds it gone
            )
        }
        unused = sorted(own.keys() - _used(tx, discarded=discarded))
        hashes = _delete(tx, unused)
        if unused:
            audit.record(tx, caller, "snapshot.prune", f"{len(unused)} snapshots", now)
    blobs.collect(db, store, hashes)
    return RemovedCode(snapshots=len(unused), size=sum(own[each] for each in unused))


def _used(tx: Connection, *, discarded: bool) -> set[str]:
    """Return the ids of the snapshots that jobs are on, whoever submitted them."""
    query = select(Job.code).where(Job.code.is_not(None)).distinct()
    if discarded:
        query = query.where(Job.discarded_us.is_(None))
    return set(tx.scalars(query))


def _delete(tx: Connection, snapshots: list[str]) -> set[str]:
    hashes: set[str] = set()
    for some in chunks(snapshots):
        hashes.update(tx.scalars(select(SnapshotFile.sha256).where(SnapshotFile.snapshot_id.in_(some))))
        tx.execute(delete(SnapshotFile).where(SnapshotFile.snapshot_id.in_(some)))
        tx.execute(delete(Snapshot).where(Snapshot.id.in_(some)))
    return hashes
