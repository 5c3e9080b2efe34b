"""Garbage collection: old samples and outages, abandoned uploads, blobs without a reference."""

import logging

from sqlalchemy import Connection, delete, exists, select

from service.artifacts import blobs
from service.db import idempotency, stored_bytes
from service.db.engine import Database
from service.db.models import Checkpoint, IdempotencyKey, Member, Outage, Sample, Snapshot, SnapshotFile
from service.storage.retention import mark_deleted
from service.storage.store import BlobStore
from torchyard.quantities import SECONDS

DAY_US = SECONDS["d"] * 1_000_000
KEEP_SAMPLES_US = 7 * DAY_US
#: As far back as the timeline of all devices reaches.
KEEP_OUTAGES_US = 7 * DAY_US
#: Age at which uploads, uncommitted snapshots and blobs without a reference count as abandoned.
ABANDONED_US = DAY_US

_log = logging.getLogger(__name__)


def sweep(db: Database, store: BlobStore, now: int) -> None:
    """Remove everything old or abandoned. Call it every few minutes, outside any transaction."""
    store.sweep_inbox((now - ABANDONED_US) / 1e6)
    with db.write() as tx:
        tx.execute(delete(Sample).where(Sample.time_us < now - KEEP_SAMPLES_US))
        tx.execute(delete(Outage).where(Outage.ended_us < now - KEEP_OUTAGES_US))
        tx.execute(delete(IdempotencyKey).where(IdempotencyKey.created_us < now - idempotency.KEPT_US))
    with db.write() as tx:
        _drop_uncommitted_snapshots(tx, now - ABANDONED_US)
        _drop_vanished_checkpoints(tx, now)
    with db.read() as tx:
        orphans = blobs.orphans(tx, now - ABANDONED_US)
    blobs.collect(db, store, orphans)


def _drop_uncommitted_snapshots(tx: Connection, before_us: int) -> None:
    old = select(Snapshot.id).where(~Snapshot.committed, Snapshot.created_us < before_us).order_by(Snapshot.id)
    ids = list(tx.scalars(old.with_for_update()))  # one that is committed or announced again meanwhile stays
    tx.execute(delete(SnapshotFile).where(SnapshotFile.snapshot_id.in_(ids)))
    tx.execute(delete(Snapshot).where(Snapshot.id.in_(ids)))


def _drop_vanished_checkpoints(tx: Connection, now: int) -> None:
    """Mark checkpoints as deleted that never came here before their node removed the attempt's folder."""
    settled = ~exists().where(Member.attempt_id == Checkpoint.attempt_id, ~Member.settled)
    gone = select(Checkpoint.id).where(Checkpoint.state == "committed", settled).order_by(Checkpoint.id)
    mark_deleted(tx, list(tx.scalars(gone.with_for_update())), now)


def correct_sums(db: Database) -> int:
    """Correct sums of stored bytes that are not those of the files, and return how many there were: none, ever, unless
    somebody has changed tables by hand. Call it once a day: it looks at all files.
    """
    with db.read() as tx:
        wrong = stored_bytes.differences(tx)
    if wrong:
        _log.warning("stored bytes of users in projects were wrong, and are corrected: %s", dict(wrong))
        with db.write() as tx:
            # Whoever has changed files since has changed the sum by as much: the difference is the same.
            stored_bytes.grow(tx, wrong)
    return len(wrong)
