"""Metric points: one transaction a batch, in which the stream's mark moves too."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from operator import itemgetter, lt
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Row, bindparam, exists, func, not_, or_, select, update

from service.attempts import tracked
from service.attempts.memory import AttemptIdentity, Memory
from service.db.engine import Database
from service.db.models import Job, MetricSeries, MetricStream
from service.db.special_values import CODES
from service.db.unit_of_work import unit_of
from service.db.upsert import insert
from service.errors import OffsetAheadError, field_problem, field_problems, invalid
from service.ingest import extremes
from torchyard.ids import AttemptId
from torchyard.numbers import INT64, MAX_METRIC_NAME
from torchyard.wire import Mark, MetricBatch, MetricRecord

#: Series of one process; a script that invents names without end must not fill the database.
MAX_SERIES = 5000
_STREAM = re.compile(r"[A-Za-z0-9._-]{1,200}")


class MetricRow(NamedTuple):
    """A row of `metric_points`, in the order of its columns."""

    series_id: int
    seq: int
    step: int
    time_us: int
    value: float | None
    special: int


def parse(body: bytes) -> MetricBatch:
    """Return the batch; records that are not valid are left out and counted as skipped, so that none blocks the rest.

    Raises an ``invalid-request`` problem if the batch itself cannot be read.
    """
    try:
        batch = MetricBatch.model_validate_json(body)
    except ValidationError:
        batch = _parse_one_by_one(body)
    if not 0 <= batch.offset <= batch.end < INT64.stop:
        raise field_problem("offset", "must not be negative nor beyond end")
    if not _STREAM.fullmatch(batch.stream):
        raise field_problem("stream", "must be a file name of letters, digits, '.', '_' and '-'")
    if batch.taken is not None and batch.taken < 0:
        raise field_problem("taken", "must not be negative")
    if not (0 <= batch.rank < 2**31 and 0 <= batch.node_rank < 2**31):
        raise field_problem("rank", "must not be negative")
    return batch


def _parse_one_by_one(body: bytes) -> MetricBatch:
    raw = _object(body)
    records = raw["records"]
    try:
        batch = MetricBatch.model_validate({**raw, "records": []})
    except ValidationError as error:
        raise invalid(field_problems(error.errors(), MetricBatch)) from error
    read = [entry for item in records if (entry := _read(item)) is not None]
    return batch.model_copy(update={"records": read, "skipped": batch.skipped + len(records) - len(read)})


def _object(body: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise field_problem("(body)", "is not valid JSON") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("records"), list):
        raise field_problem("records", "required, as a list in a JSON object: add it")
    return raw


def _read(item: Any) -> tuple[int, MetricRecord] | None:
    try:
        number, record = item
        return int(number), MetricRecord.model_validate(record)
    except (TypeError, ValueError, OverflowError):
        return None


def record(db: Database, memory: Memory, attempt: AttemptIdentity, batch: MetricBatch) -> Mark:
    """Store the batch's points; return the stream's mark. Raises `OffsetAheadError`."""
    with db.write() as tx:
        stream = _stream(tx, attempt.id, batch)
        mark = stream.offset
        if batch.offset > mark:
            raise OffsetAheadError(batch.offset, mark)
        if batch.end <= mark:
            if not batch.records:
                _count(tx, attempt.id, batch, stream)
            return Mark(offset=mark)
        if batch.offset < mark and batch.skipped:
            return Mark(offset=mark)  # how many were skipped behind the mark is unknown: let the node cut there
        batch = in_order(batch, mark, stream.taken or 0)
        series = _store(tx, memory, attempt, batch)
        _advance(tx, attempt.id, batch, mark)
        _count(tx, attempt.id, batch, stream)
        if series is not None:
            unit_of(tx).tell(f"metrics:{attempt.job_id}")
    if series is not None:
        memory.series.put((attempt.id, batch.stream), series)
    return Mark(offset=batch.end)


def in_order(batch: MetricBatch, mark: int, taken: int) -> MetricBatch:
    """Return the batch with the records whose numbers go on from the `taken` before; others count as skipped.

    A number that came before would be a point in the place of another. What lies behind the mark has been counted.
    """
    numbers = [number for number, _ in batch.records]
    if all(map(lt, [taken - 1, *numbers], numbers)):
        return batch
    records, least = [], taken
    for number, entry in batch.records:
        if number >= least:
            records.append((number, entry))
            least = number + 1
    new = len(batch.records) - len(records) if batch.offset == mark else 0
    return batch.model_copy(update={"records": records, "skipped": batch.skipped + new})


def _of_stream(attempt_id: AttemptId, batch: MetricBatch) -> tuple[Any, ...]:
    return (
        MetricStream.attempt_id == attempt_id,
        MetricStream.node_rank == batch.node_rank,
        MetricStream.stream == batch.stream,
    )


def _stream(tx: Connection, attempt_id: AttemptId, batch: MetricBatch) -> Row[int, int | None, int]:
    columns = (MetricStream.offset, MetricStream.taken, MetricStream.lost)
    query = select(*columns).where(*_of_stream(attempt_id, batch)).with_for_update()
    row = tx.execute(query).one_or_none()
    if row is not None:
        return row
    key = {"attempt_id": attempt_id, "node_rank": batch.node_rank, "stream": batch.stream}
    tx.execute(insert(tx, MetricStream).values(**key).on_conflict_do_nothing())
    return tx.execute(query).one()


def _advance(tx: Connection, attempt_id: AttemptId, batch: MetricBatch, mark: int) -> None:
    values = {"offset": batch.end, "skipped": MetricStream.skipped + batch.skipped}
    where = (*_of_stream(attempt_id, batch), MetricStream.offset == mark)
    tx.execute(update(MetricStream).where(*where).values(**values))


def _count(tx: Connection, attempt_id: AttemptId, batch: MetricBatch, stream: Row[int, int | None, int]) -> None:
    """Count the records that the process took and that have no line, from the gaps between the lines' numbers.

    Of a stream that was begun before they were counted, only what comes now.
    """
    if batch.taken is None:
        return
    known = stream.taken
    if known is None:
        known = batch.records[0][0] if stream.offset and batch.records else batch.taken if stream.offset else 0
    new = min(batch.taken, INT64.stop - 1) - known
    if new > 0:
        lost = max(0, new - sum(number >= known for number, _ in batch.records))
        values = {"taken": known + new, "lost": stream.lost + lost}
        tx.execute(update(MetricStream).where(*_of_stream(attempt_id, batch)).values(**values))


def _store(tx: Connection, memory: Memory, attempt: AttemptIdentity, batch: MetricBatch) -> dict[str, int] | None:
    """Insert the points; return the ids of the stream's series, or None when there was no point."""
    records = [(seq, record) for seq, record in batch.records if _fits(seq, record)]
    names = {name for _, record in records for name in record.values}
    if not names:
        return None
    known = memory.series.get((attempt.id, batch.stream)) or {}
    series = known if names <= known.keys() else _series(tx, attempt, batch, names)
    points = list(_points(records, series))
    if not points:
        return None
    begun = [] if series is known or attempt.number == 1 else _begun(tx, attempt, batch)
    _insert_points(tx, points)
    _set_values(tx, points)
    unit_of(tx).count_points(len(points))
    extremes.carry_over(tx, attempt.job_id, begun)
    _set_progress(tx, attempt, batch, records)
    return series


def _fits(seq: int, record: MetricRecord) -> bool:
    return seq in INT64 and record.step in INT64 and record.time_us in INT64


def _points(records: Iterable[tuple[int, MetricRecord]], series: dict[str, int]) -> Iterable[MetricRow]:
    find: Callable[[str], int | None] = series.get
    inf = float("inf")
    for seq, entry in records:
        step, time_us = entry.step, entry.time_us
        for name, value in entry.values.items():
            if (series_id := find(name)) is None:
                continue
            if type(value) is float and -inf < value < inf:
                yield MetricRow(series_id, seq, step, time_us, value, 0)
            else:
                yield MetricRow(series_id, seq, step, time_us, None, CODES[str(value)])


def _series(tx: Connection, attempt: AttemptIdentity, batch: MetricBatch, names: set[str]) -> dict[str, int]:
    """Return the ids of all series of the stream, with new ones for new names."""
    while True:
        query = select(MetricSeries.name, MetricSeries.id)
        found = tx.execute(query.where(MetricSeries.attempt_id == attempt.id, MetricSeries.stream == batch.stream))
        known = {row.name: row.id for row in found}
        room = MAX_SERIES - len(known)
        new = sorted(name for name in names - known.keys() if _is_name(name))[: max(0, room)]
        if not new:
            return known
        first = (tx.scalar(select(func.max(MetricSeries.id))) or 0) + 1
        # Another transaction of PostgreSQL may take the same ids or names: what is then missing is tried again.
        number = tx.scalar(select(Job.number).where(Job.id == attempt.job_id))
        tx.execute(
            insert(tx, MetricSeries).on_conflict_do_nothing(),
            [
                {
                    "id": first + n,
                    "job_id": attempt.job_id,
                    "attempt_id": attempt.id,
                    "attempt": attempt.number,
                    "stream": batch.stream,
                    "rank": batch.rank,
                    "name": name,
                    "number": number,
                }
                for n, name in enumerate(new)
            ],
        )


def _begun(tx: Connection, attempt: AttemptIdentity, batch: MetricBatch) -> list[int]:
    """Return the ids of the stream's series that have no point yet."""
    own = (MetricSeries.attempt_id == attempt.id, MetricSeries.stream == batch.stream)
    return list(tx.scalars(select(MetricSeries.id).where(*own, MetricSeries.last_step.is_(None))))


def _is_name(name: str) -> bool:
    """Tell whether a name is short, and what databases and answers can hold."""
    return len(name) <= MAX_METRIC_NAME and "\0" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)


_COLUMNS = ", ".join(MetricRow._fields)
_INSERT_SQLITE = f"INSERT OR IGNORE INTO metric_points ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608
# One statement with six arrays: PostgreSQL takes it several times faster than a statement a row.
_INSERT_POSTGRESQL = (
    f"INSERT INTO metric_points ({_COLUMNS}) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], "  # noqa: S608
    "%s::bigint[], %s::float8[], %s::bigint[]) ON CONFLICT DO NOTHING"
)


def _insert_points(tx: Connection, points: list[MetricRow]) -> None:
    if tx.dialect.name == "sqlite":
        tx.exec_driver_sql(_INSERT_SQLITE, points)
    else:
        tx.exec_driver_sql(_INSERT_POSTGRESQL, tuple(map(list, zip(*points, strict=True))))


_UPDATE_VALUES = (
    update(MetricSeries)
    .where(MetricSeries.id == bindparam("series"))
    .values(
        last_step=bindparam("step"),
        last_time_us=bindparam("time_us"),
        last_value=bindparam("value"),
        last_special=bindparam("special"),
        unrolled=MetricSeries.unrolled + bindparam("points"),
        **extremes.WIDENED,
    )
)


def _set_values(tx: Connection, points: list[MetricRow]) -> None:
    """Set each series' newest value, its smallest and largest, and how many have come."""
    last = {point.series_id: point for point in points}
    counts = Counter(map(itemgetter(0), points))
    ends = _ends(points)
    rows = []
    for series, point in last.items():
        low, high = ends.get(series, (None, None))
        newest = {"step": point.step, "time_us": point.time_us, "value": point.value, "special": point.special}
        rows.append({"series": series, "low": low, "high": high, "points": counts[series], **newest})
    tx.execute(_UPDATE_VALUES, rows)


def _ends(points: Iterable[MetricRow]) -> dict[int, tuple[float, float]]:
    """Return the smallest and the largest finite value of each series that has one."""
    ends: dict[int, tuple[float, float]] = {}
    for series, _, _, _, value, _ in points:
        if value is not None:
            low, high = ends.get(series, (value, value))
            ends[series] = min(low, value), max(high, value)
    return ends


def _set_progress(
    tx: Connection, attempt: AttemptIdentity, batch: MetricBatch, records: list[tuple[int, MetricRecord]]
) -> None:
    """Set the job's step to that of its newest attempt's lowest reporting rank.

    If none reports, to what it prints of the whole run; if it prints nothing either, to a tracker's.
    """
    reported = exists().where(MetricSeries.attempt_id == attempt.id, tracked.REPORTED)
    before: ColumnElement[bool] = reported
    values: dict[str, Any] = {}
    if tracked.precedence(batch.stream) == 0:
        before = reported.where(MetricSeries.rank < batch.rank)
        total = next((entry.total_steps for _, entry in reversed(records) if entry.total_steps is not None), None)
        values["step"] = records[-1][1].step
        if total is not None and total in INT64:
            values["total_steps"] = total
    elif tracked.is_printed(batch.stream):
        # Without a total it is taken back: what was counted is not the run.
        last = records[-1][1]
        known = last.total_steps is not None and last.total_steps in INT64
        values = {"step": last.step, "total_steps": last.total_steps} if known else {"step": None, "total_steps": None}
    else:
        # One tag may count steps and another epochs.
        before = or_(before, Job.total_steps.is_not(None))
        newest = select(func.max(MetricSeries.last_step)).where(
            MetricSeries.attempt_id == attempt.id, not_(tracked.PRINTED)
        )
        values["step"] = newest.scalar_subquery()
    tx.execute(update(Job).where(Job.id == attempt.job_id, Job.attempt == attempt.number, ~before).values(**values))
