"""Reading logs: which there are, and their bytes up to the mark."""

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, exists, func, select

from service.db.engine import Database
from service.db.models import Attempt, Job, LogStream, LogTime, Member
from service.errors import not_found
from service.storage.store import BlobStore
from torchyard import api
from torchyard.ids import AttemptId, JobId
from torchyard.states import ATTEMPT_FINAL, JOB_FINAL

#: Bytes of one answer at most.
MAX_READ = 4 * 2**20
#: Of a log that grows, the time is noted so often at most.
TIME_STEP_US = 5_000_000
#: A reader who begins at a moment gets the whole line, if it is no longer than this.
_LINE = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class LogView:
    """A rank's log as it is now."""

    attempt_id: AttemptId | None
    attempt: int
    """Number of the attempt; 0 while there is none."""
    size: int
    final: bool
    """No process of the attempt writes any more."""
    settled: bool
    """All of it is here."""

    @property
    def tag(self) -> tuple[object, ...]:
        """Parts of an ETag."""
        return self.attempt_id, self.size


def current(db: Database, job_id: JobId, rank: int, number: int | None = None) -> LogView:
    """Return the log of a rank as it is now, as `view` does."""
    with db.read() as tx:
        return view(tx, job_id, rank, number)


def current_since(
    db: Database, job_id: JobId, rank: int, number: int | None, time_us: int | None
) -> tuple[LogView, int]:
    """Return the log of a rank as it is now, and the offset of what came at `time_us` or later (see `start_since`)."""
    with db.read() as tx:
        seen = view(tx, job_id, rank, number)
        return seen, 0 if time_us is None else start_since(tx, seen, rank, time_us)


def view(tx: Connection, job_id: JobId, rank: int, number: int | None = None) -> LogView:
    """Return the log of a rank in an attempt (default: the newest); ``not-found`` for strange jobs and attempts."""
    state = tx.scalar(select(Job.state).where(Job.id == job_id))
    if state is None:
        raise not_found("job", job_id)
    row = tx.execute(_query(job_id, rank, number)).first()
    if row is not None:
        final = row.state in ATTEMPT_FINAL
        settled = final and (not row.unsettled or row.claimed_us is None)
        return LogView(attempt_id=row.id, attempt=row.number, size=row.size, final=final, settled=settled)
    if number:
        raise not_found(f"attempt of job {job_id}", number)
    over = state in JOB_FINAL
    return LogView(attempt_id=None, attempt=0, size=0, final=over, settled=over)


def _query(job_id: JobId, rank: int, number: int | None) -> Any:
    unsettled = exists().where(Member.attempt_id == Attempt.id, ~Member.settled)
    query = (
        select(
            Attempt.id,
            Attempt.number,
            Attempt.state,
            Attempt.claimed_us,
            func.coalesce(LogStream.size, 0).label("size"),
            unsettled.label("unsettled"),
        )
        .outerjoin(LogStream, and_(LogStream.attempt_id == Attempt.id, LogStream.rank == rank))
        .where(Attempt.job_id == job_id)
        .order_by(Attempt.number.desc())
        .limit(1)
    )
    return query.where(Attempt.number == number) if number else query


def read(store: BlobStore, seen: LogView, rank: int, offset: int, limit: int) -> bytes:
    """Return bytes from `offset`, `limit` at most, none beyond the mark; none of a log that was discarded meanwhile."""
    length = min(limit, seen.size - offset, MAX_READ)
    if seen.attempt_id is None or length <= 0:
        return b""
    try:
        descriptor = os.open(store.log_path(seen.attempt_id, rank), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, length, offset)
    finally:
        os.close(descriptor)


def whole(store: BlobStore, seen: LogView, rank: int) -> Iterator[bytes]:
    """Yield all bytes up to the mark, in parts."""
    offset = 0
    while data := read(store, seen, rank, offset, MAX_READ):
        yield data
        offset += len(data)


def start_since(tx: Connection, seen: LogView, rank: int, time_us: int) -> int:
    """Offset of the first byte that may have come at `time_us` or later; the size if all came before.

    Up to `TIME_STEP_US` of what came before it is included, as are bytes whose time was never noted.
    """
    of_stream = (LogTime.attempt_id == seen.attempt_id, LogTime.rank == rank)
    # All bytes behind a noted time came within a step of it; what came later than that has a note of its own.
    later = (*of_stream, LogTime.time_us > time_us - TIME_STEP_US)
    first, first_later = (
        tx.execute(select(LogTime.offset, LogTime.time_us).where(*which).order_by(LogTime.offset).limit(1)).first()
        for which in (of_stream, later)
    )
    if first is None or time_us < first.time_us:
        return 0
    return min(first_later.offset, seen.size) if first_later is not None else seen.size


def line_start(store: BlobStore, seen: LogView, rank: int, offset: int) -> int:
    """Return where the line of the byte at `offset` begins; `offset` itself if that is very far, or the end."""
    if offset >= seen.size:
        return offset
    reach = max(0, offset - _LINE)
    before = read(store, seen, rank, reach, offset - reach)
    newline = before.rfind(b"\n")
    return reach + newline + 1 if newline >= 0 or reach == 0 else offset


def streams(db: Database, job_id: JobId) -> list[api.LogStream]:
    """Return all logs of a job, by attempt and rank; ``not-found`` for an unknown job."""
    query = (
        select(Attempt.number.label("attempt"), LogStream.rank, LogStream.size, LogStream.dropped_bytes)
        .join(Attempt, Attempt.id == LogStream.attempt_id)
        .where(Attempt.job_id == job_id)
        .order_by(Attempt.number, LogStream.rank)
    )
    with db.read() as tx:
        if tx.scalar(select(Job.id).where(Job.id == job_id)) is None:
            raise not_found("job", job_id)
        return [api.LogStream(**row._mapping) for row in tx.execute(query)]


def decode(data: bytes, *, last: bool) -> tuple[str, int]:
    """Text of whole characters, and how many bytes it took: a character cut at the end waits for its rest.

    What is not UTF-8 becomes U+FFFD; with `last` a cut character does too.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, last)
    return text, len(data) - len(decoder.getstate()[0])
