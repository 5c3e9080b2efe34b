"""Rows of the blobs in the artifact store: which are here, which somebody still needs."""

from collections.abc import AsyncIterable, Callable, Collection, Iterable
from typing import Any

from anyio import to_thread
from sqlalchemy import ColumnElement, Connection, Integer, cast, delete, exists, func, or_, select

from service.db.chunks import chunks
from service.db.engine import Database
from service.db.models import Blob, BlobGrant, Checkpoint, CheckpointFile, Output, SnapshotFile
from service.db.upsert import insert
from service.errors import ProblemError
from service.storage.store import BlobStore, Upload, is_hash
from torchyard.translatable import TranslatableText

#: First number of the advisory locks on blobs: "blob", read as an integer.
_LOCKS = int.from_bytes(b"blob", "big")
#: Bytes that are written to disk at once.
_BUFFER = 2**20


def missing(tx: Connection, hashes: Iterable[str]) -> list[str]:
    """Return the hashes that the store lacks, sorted; lock the others, so that they stay until the end of `tx`."""
    wanted = sorted(set(hashes))
    have: set[str] = set()
    for some in chunks(wanted):
        query = select(Blob.sha256).where(Blob.sha256.in_(some)).order_by(Blob.sha256).with_for_update(read=True)
        have.update(tx.scalars(query))
    return [sha256 for sha256 in wanted if sha256 not in have]


async def receive(
    db: Database,
    store: BlobStore,
    body: AsyncIterable[bytes],
    sha256: str,
    *,
    now_us: Callable[[], int],
    limit: int | None = None,
    user_id: str | None = None,
) -> None:
    """Stream a body of at most `limit` bytes into the store; memory holds a megabyte of it at most.

    With `user_id`, the user may then use the blob in snapshots.
    """
    store.check_room()

    def finish(upload: Upload, rest: bytes) -> None:
        upload.write(rest)
        upload.commit()
        _insert(db, store, sha256, upload.size, now_us(), user_id)

    with store.upload(sha256, limit) as upload:
        buffer = bytearray()
        async for chunk in body:
            buffer += chunk
            if len(buffer) >= _BUFFER:
                store.check_room()
                await to_thread.run_sync(upload.write, bytes(buffer))
                buffer.clear()
        await to_thread.run_sync(finish, upload, bytes(buffer))


def take_over(
    db: Database, store: BlobStore, name: str, sha256: str, size: int, now: int, *, linked: bool = False
) -> None:
    """Take a file that a node has placed in the inbox into the store."""
    store.take_over(name, sha256, size, linked=linked)
    _insert(db, store, sha256, size, now, None)


def _insert(db: Database, store: BlobStore, sha256: str, size: int, now: int, user_id: str | None) -> None:
    with db.write() as tx:
        _hold(tx, sha256)
        if not store.has(sha256):  # `collect` removed the same blob's older copy, and with it this one
            raise ProblemError(
                "unavailable",
                TranslatableText(
                    "blob-removed", "Blob {name} was removed while it arrived: send it again.", name=sha256
                ),
            )
        values = {"sha256": sha256, "size": size, "created_us": now}
        tx.execute(insert(tx, Blob).values(**values).on_conflict_do_nothing())
        if user_id is not None:
            grant = {"sha256": sha256, "user_id": user_id}
            tx.execute(insert(tx, BlobGrant).values(**grant).on_conflict_do_nothing())


def _hold(tx: Connection, sha256: str) -> None:
    """Let a blob and its row come or go in no other transaction until this one's end, at other services neither: one
    that was just stored must not be the one that is removed. SQLite has one writer anyhow.
    """
    if tx.dialect.name != "sqlite":
        number = int.from_bytes(bytes.fromhex(sha256[:8]), "big", signed=True)
        tx.execute(select(func.pg_advisory_xact_lock(cast(_LOCKS, Integer), cast(number, Integer))))


def _referred(sha256: Any) -> ColumnElement[bool]:
    """Condition that a checkpoint (not deleted), a snapshot or an output refers to the hash (a value or a column)."""
    return or_(
        exists()
        .where(CheckpointFile.sha256 == sha256)
        .where(Checkpoint.id == CheckpointFile.checkpoint_id, Checkpoint.state != "deleted"),
        exists().where(SnapshotFile.sha256 == sha256),
        exists().where(Output.sha256 == sha256),
    )


def collect(db: Database, store: BlobStore, hashes: Collection[str]) -> int:
    """Remove those blobs that nothing refers to any more; return how many."""
    return sum(_collect_one(db, store, sha256) for sha256 in set(hashes))


def _collect_one(db: Database, store: BlobStore, sha256: str) -> bool:
    if not is_hash(sha256):
        return False
    with db.write() as tx:
        # Locked first and judged after, so that a reference made meanwhile is seen (`missing` takes the same lock).
        row = tx.execute(select(Blob.sha256).where(Blob.sha256 == sha256).with_for_update()).one_or_none()
        if row is None or tx.scalar(select(_referred(sha256))):
            return False
        tx.execute(delete(BlobGrant).where(BlobGrant.sha256 == sha256))
        tx.execute(delete(Blob).where(Blob.sha256 == sha256))
    with db.write() as tx:
        _hold(tx, sha256)
        if tx.scalar(select(Blob.sha256).where(Blob.sha256 == sha256)) is None:  # it has not come again since
            store.delete(sha256)
    return True


def orphans(tx: Connection, before_us: int, limit: int = 1000) -> list[str]:
    """Return the hashes of blobs that came before a moment and that nothing refers to."""
    query = select(Blob.sha256).where(Blob.created_us < before_us, ~_referred(Blob.sha256)).limit(limit)
    return list(tx.scalars(query))
