"""Log bytes: into the file at their offset, fsynced, and only then counted."""

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Row, select, update

from service.attempts.memory import AttemptIdentity, Memory
from service.db.engine import Database
from service.db.models import LogStream, LogTime
from service.db.unit_of_work import unit_of
from service.db.upsert import insert
from service.errors import OffsetAheadError
from service.infra.times import Clock
from service.storage.store import BlobStore, sync_folder
from service.telemetry.logs import TIME_STEP_US
from torchyard.ids import AttemptId
from torchyard.wire import Mark


@dataclass(frozen=True, kw_only=True)
class ReceivedLog:
    """Bytes of a rank's log, which start at an offset of its file."""

    rank: int
    """Below 0: of the launcher on the node of that rank, -1 for the first."""
    offset: int
    data: bytes
    dropped: int = 0
    """Bytes that the node has thrown away so far."""


def append(
    db: Database, store: BlobStore, memory: Memory, clock: Clock, attempt: AttemptIdentity, log: ReceivedLog
) -> Mark:
    """Store a part of a rank's log; return how many bytes there are now. Raises `OffsetAheadError`."""
    rank, offset, dropped = log.rank, log.offset, log.dropped
    with memory.lock(attempt.id, rank):
        stream = _stream(db, attempt.id, rank)
        mark = stream.size if stream else 0
        if offset > mark:
            raise OffsetAheadError(offset, mark)
        new = memoryview(log.data)[mark - offset :]
        if not new and stream is not None and dropped <= stream.dropped_bytes:
            return Mark(offset=mark)
        if new:
            _write(store.log_path(attempt.id, rank), mark, new)
        now = clock()
        with db.write() as tx:
            _count(tx, attempt, rank, mark + len(new), dropped)
            if new and _is_time_due(stream, now):
                _note_time(tx, attempt.id, rank, mark, now)
            unit_of(tx).tell(f"logs:{attempt.id}")
    return Mark(offset=mark + len(new))


def _stream(db: Database, attempt_id: AttemptId, rank: int) -> Row[int, int, int | None] | None:
    with db.read() as tx:
        query = select(LogStream.size, LogStream.dropped_bytes, LogStream.timed_us)
        return tx.execute(query.where(LogStream.attempt_id == attempt_id, LogStream.rank == rank)).one_or_none()


def _write(path: Path, offset: int, data: memoryview) -> None:
    new = not path.exists()
    if new:
        path.parent.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while data:
            written = os.pwrite(descriptor, data, offset)
            data, offset = data[written:], offset + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if new:
        sync_folder(path.parent)
        sync_folder(path.parent.parent)


def _count(tx: Connection, attempt: AttemptIdentity, rank: int, size: int, dropped: int) -> None:
    tx.execute(insert(tx, LogStream).values(attempt_id=attempt.id, rank=rank).on_conflict_do_nothing())
    of_stream = (LogStream.attempt_id == attempt.id, LogStream.rank == rank)
    before = tx.scalar(select(LogStream.size).where(*of_stream).with_for_update()) or 0
    if before < size:
        tx.execute(update(LogStream).where(*of_stream).values(size=size))
        unit_of(tx).count_stored(attempt.job_id, size - before)
    tx.execute(update(LogStream).where(*of_stream, LogStream.dropped_bytes < dropped).values(dropped_bytes=dropped))


def _is_time_due(stream: Row[int, int, int | None] | None, now: int) -> bool:
    """Return true where the newest noted time is too old, or lies in the future after a step of the clock."""
    return stream is None or stream.timed_us is None or not 0 <= now - stream.timed_us < TIME_STEP_US


def _note_time(tx: Connection, attempt_id: AttemptId, rank: int, offset: int, now: int) -> None:
    row = {"attempt_id": attempt_id, "rank": rank, "offset": offset, "time_us": now}
    tx.execute(insert(tx, LogTime).values(row).on_conflict_do_nothing())
    of_stream = (LogStream.attempt_id == attempt_id, LogStream.rank == rank)
    tx.execute(update(LogStream).where(*of_stream).values(timed_us=now))
