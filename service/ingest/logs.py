"""Log bytes: into the file at their offset, fsynced, and only then counted."""

import os
from pathlib import Path

from sqlalchemy import Connection, Row, select, update

from service.attempts import Facts
from service.context import Context
from service.db.models import LogStream
from service.db.upsert import insert
from service.exceptions import OffsetAheadError
from service.store import sync_folder
from torchyard.wire import Mark


def append(ctx: Context, attempt: Facts, rank: int, offset: int, data: bytes, dropped: int = 0) -> Mark:
    """Stores the bytes of a rank's log that start at `offset`; returns how many bytes there are now.

    `dropped` is the number of bytes that the node has thrown away so far. Raises `OffsetAheadError`.
    """
    with ctx.memory.lock(attempt.id, rank):
        stream = _stream(ctx, attempt.id, rank)
        mark = stream.size if stream else 0
        if offset > mark:
            raise OffsetAheadError(offset, mark)
        new = memoryview(data)[mark - offset :]
        if not new and stream is not None and dropped <= stream.dropped_bytes:
            return Mark(offset=mark)
        if new:
            _write(ctx.store.log_path(attempt.id, rank), mark, new)
        with ctx.db.write() as tx:
            _count(tx, attempt.id, rank, mark + len(new), dropped)
    ctx.hub.notify(f"logs:{attempt.id}")
    return Mark(offset=mark + len(new))


def _stream(ctx: Context, attempt_id: str, rank: int) -> Row[int, int] | None:
    with ctx.db.read() as tx:
        query = select(LogStream.size, LogStream.dropped_bytes)
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


def _count(tx: Connection, attempt_id: str, rank: int, size: int, dropped: int) -> None:
    tx.execute(insert(tx, LogStream).values(attempt_id=attempt_id, rank=rank).on_conflict_do_nothing())
    of_stream = (LogStream.attempt_id == attempt_id, LogStream.rank == rank)
    tx.execute(update(LogStream).where(*of_stream, LogStream.size < size).values(size=size))
    tx.execute(update(LogStream).where(*of_stream, LogStream.dropped_bytes < dropped).values(dropped_bytes=dropped))
