"""Reading of the metrics that jobs report."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.orm import aliased

from service.attempts import tracked
from service.db.engine import Database
from service.db.models import Attempt, Job, MetricPoint, MetricSeries, MetricStream
from service.db.records.record import Record
from service.errors import field_problem, not_found
from service.infra.etags import Tagged, etag, names
from service.telemetry import rollups
from service.telemetry.blocks import Axis, bucketed
from service.telemetry.rollups import ALL, LINES, NONE, Rows, SeriesBlocks, Within
from service.telemetry.series import (
    CURSOR_WITH_RANGE,
    NO_CURSOR,
    MetricsCursor,
    Points,
    int64,
    join,
    last_steps,
    thin,
)
from torchyard import api
from torchyard.ids import AttemptId, JobId

_Key = tuple[str, int]
#: Points of a series of a curve.
_Part = Points | SeriesBlocks


@dataclass(frozen=True, slots=True)
class _Series(Record):
    """A series of metrics, the line up to which it is rolled up, and the step that its attempt resumed from."""

    id: int
    attempt_id: AttemptId
    attempt: int
    stream: str
    rank: int
    name: str
    rolled_seq: int
    resumed_from_step: int | None

    @property
    def curve(self) -> _Key:
        return self.name, self.rank


@dataclass(frozen=True, kw_only=True)
class MetricsRange:
    """A part of the axis, both ends included: steps, or unix time in seconds; None: open."""

    axis: Axis = Axis.STEP
    start: float | None = None
    end: float | None = None

    @property
    def is_all(self) -> bool:
        return self.start is None and self.end is None

    def where(self) -> list[ColumnElement[bool]]:
        """Conditions that a row of `metric_points` in the range fulfils."""
        column = MetricPoint.step if self.axis is Axis.STEP else MetricPoint.time_us
        low, high = self._ends()
        return [*([] if self.start is None else [column >= low]), *([] if self.end is None else [column <= high])]

    def within(self, last_step: int | None, seq: tuple[int, int] = LINES) -> Within:
        """Return the bounds of the points in the range that are of some lines, and not behind a step."""
        step, time_us = (self._ends(), ALL) if self.axis is Axis.STEP else (ALL, self._ends())
        if last_step is not None:
            step = (step[0], min(step[1], last_step)) if last_step >= ALL[0] else NONE
        return Within(seq=seq, step=step, time_us=time_us)

    def _ends(self) -> tuple[int, int]:
        start, end = (None if each is None else each * self.axis.scale for each in (self.start, self.end))
        return ALL[0] if start is None else int64(start, ceil), ALL[1] if end is None else int64(end, floor)


@dataclass(frozen=True, kw_only=True)
class MetricsQuery:
    """Choice of series: no names means all, no rank means every one."""

    names: frozenset[str] = frozenset()
    rank: int | None = None
    max_points: int | None = None
    """Points of a series at most."""
    buckets: int | None = None
    """Instead of fewer points: a series that has more than so many in the range is told in that many buckets."""
    range: MetricsRange = MetricsRange()
    since: str | None = None
    """`cursor` of an earlier answer with the same names and rank."""
    until: str | None = None
    """`cursor` of another answer: what that has not is left out."""

    def wants(self, series: _Series) -> bool:
        return (not self.names or series.name in self.names) and self.rank in (None, series.rank)


def of_job(db: Database, job_id: JobId, query: MetricsQuery, known: str | None) -> Tagged[api.Metrics]:
    """Return the job's series, as `read` does, unless the client knows their tag (its If-None-Match is `known`)."""
    with db.read() as tx:
        current = tag(tx, job_id)
        return Tagged(current, None if names(known, current) else read(tx, job_id, query))


def tag(tx: Connection, job_id: JobId) -> str:
    """ETag of a job's metrics; ``not-found`` for an unknown job."""
    job = tx.execute(select(Job.discarded_us).where(Job.id == job_id)).one_or_none()
    if job is None:
        raise not_found("job", job_id)
    query = (
        select(func.count(), func.sum(MetricStream.offset), func.max(Attempt.number))
        .select_from(MetricStream)
        .join(Attempt, Attempt.id == MetricStream.attempt_id)
        .where(Attempt.job_id == job_id)
    )
    count, size, newest = tx.execute(query).one()
    return etag(job_id, count, int(size or 0), newest, job.discarded_us)


def read(tx: Connection, job_id: JobId, query: MetricsQuery) -> api.Metrics:
    """Return the job's series, without what a later attempt has done again; ``invalid-request`` for a bad cursor."""
    return _read(tx, _Series.all(tx.execute(_series(job_id))), query)


def newer(db: Database, job_id: JobId, since: str, until: str | None, most: int) -> api.Metrics:
    """Return the points of a job that follow a cursor; a `reset` without points for whoever had better read all anew.

    That is where the cursor is none to go on from, or where more than `most` points follow it: those are not read.
    """
    known, end = _cursor(since), _cursor(until)
    with db.read() as tx:
        series = _Series.all(tx.execute(_series(job_id)))
        newest = max((row.attempt for row in series), default=0) if end is None else end.attempt
        if known is None or known.attempt != newest or _has_more(tx, series, known, end, most):
            return api.Metrics(series=[], cursor=until or str(_end(tx, series, newest)), reset=True)
        return _read(tx, series, MetricsQuery(since=since, until=until))


def _read(tx: Connection, series: Sequence[_Series], query: MetricsQuery) -> api.Metrics:
    newest = max((row.attempt for row in series), default=0)
    if query.since and not query.range.is_all:
        raise field_problem("since", CURSOR_WITH_RANGE)
    known, until = _cursor(query.since), _cursor(query.until)
    newest = newest if until is None else until.attempt
    reset = known is None or known.attempt != newest
    marks = {} if known is None or reset else dict(known.marks)
    limits = _limits(tx, series)
    parts: defaultdict[_Key, list[_Part]] = defaultdict(list)
    counting = _counting(series)
    for stream in _streams(series):
        name = min(row.id for row in stream)
        wanted = {row.id: row for row in stream if query.wants(row) and row.id in counting}
        if until is not None and name not in until.marks:
            continue
        after = marks.get(name, -1)
        long = [row for row in wanted.values() if query.buckets is not None and row.rolled_seq > after]
        rows = _points(tx, wanted.keys() - {row.id for row in long}, after, query.range)
        if until is not None:
            rows = rows[rows["seq"] <= until.marks[name]]
        marks[name] = int(rows["seq"].max(initial=after))
        for series_id, points in _columns(rows):
            row = wanted[series_id]
            parts[row.curve].append(points.until(limits[row.curve][row.attempt]))
        lines = after + 1, LINES[1] if until is None else min(until.marks[name], LINES[1])
        for row in long:
            within = query.range.within(limits[row.curve][row.attempt], lines)
            blocks = rollups.read(tx, row.id, row.rolled_seq, within)
            marks[name] = max(marks[name], blocks.last_seq)
            if len(blocks) or query.range.is_all:
                parts[row.curve].append(blocks)
    curves = {key: parts[key] for key in sorted(parts)}
    return api.Metrics(
        series=_in_buckets(curves, query.buckets, query.range)
        if query.buckets is not None
        else [_resource(*key, _exact(found), query.max_points) for key, found in curves.items()],
        # What lies outside of a range has not been read, so it is no place to go on from.
        cursor=query.until or str(MetricsCursor(newest, marks if query.range.is_all else {})),
        reset=reset,
    )


def _has_more(
    tx: Connection, series: Sequence[_Series], known: MetricsCursor, end: MetricsCursor | None, most: int
) -> bool:
    """Return true if more than `most` points lie between two cursors, without reading more than that."""
    counting = _counting(series)
    for stream in _streams(series):
        name = min(row.id for row in stream)
        between = (
            select(MetricPoint.seq)
            .where(
                MetricPoint.series_id.in_([row.id for row in stream if row.id in counting]),
                MetricPoint.seq > known.marks.get(name, -1),
                MetricPoint.seq <= (LINES[1] if end is None else end.marks.get(name, -1)),
            )
            .limit(most + 1)
        )
        most -= tx.scalar(select(func.count()).select_from(between.subquery())) or 0
        if most < 0:
            return True
    return False


def _end(tx: Connection, series: Sequence[_Series], newest: int) -> MetricsCursor:
    """Return the cursor of whoever has all points."""
    counting = _counting(series)
    query = select(
        MetricSeries.id,
        select(func.coalesce(func.max(MetricPoint.seq), -1))
        .where(MetricPoint.series_id == MetricSeries.id)
        .scalar_subquery()
        .label("seq"),
    ).where(MetricSeries.id.in_(counting))
    seqs = {row.id: row.seq for row in tx.execute(query)}
    marks = {min(row.id for row in some): max(seqs.get(row.id, -1) for row in some) for some in _streams(series)}
    return MetricsCursor(newest, marks)


def _exact(parts: Iterable[_Part]) -> Points:
    """Return all points of a curve in order of steps."""
    return join(part.points() if isinstance(part, SeriesBlocks) else part for part in parts)


def _in_buckets(curves: Mapping[_Key, Sequence[_Part]], count: int, within: MetricsRange) -> list[api.Series]:
    """Return the series, with the same edges of buckets for all, so that they can be drawn in one table."""
    axis = within.axis
    long = {
        key: [part if isinstance(part, SeriesBlocks) else SeriesBlocks.of(part) for part in parts]
        for key, parts in curves.items()
        if sum(map(len, parts)) > count
    }
    ends = [part.ends(axis) for parts in long.values() for part in parts if len(part)]
    low, high = min((each[0] for each in ends), default=0.0), max((each[1] for each in ends), default=0.0)
    series = []
    for (name, rank), parts in curves.items():
        buckets = None
        if (blocks := long.get((name, rank))) is not None:
            fine = np.concatenate([part.blocks(axis, (high - low) / count) for part in blocks])
            buckets, points = bucketed(fine, axis, (low, high), count)
        else:
            points = _exact(parts)
        series.append(api.Series.model_construct(name=name, rank=rank, points=points.rows(), buckets=buckets))
    return series


@dataclass(frozen=True, kw_only=True)
class CountedCurve:
    """A metric of a job: its series that count, each with the last step up to which it does (None: all).

    `rolled_seq` says of each up to which line it is rolled up.
    """

    job: JobId
    name: str
    series: Mapping[int, int | None]
    rolled_seq: Mapping[int, int]

    def blocks(self, tx: Connection, within: MetricsRange) -> list[SeriesBlocks]:
        """Read its points in a range: of each series that has some, in the order of attempts."""
        short = [each for each in self.series if self.rolled_seq[each] < 0]
        points = dict(_columns(_points(tx, short, -1, within)))
        parts = [
            SeriesBlocks.of(points[each].until(last_step))
            if each in points
            else rollups.read(tx, each, self.rolled_seq[each], within.within(last_step))
            for each, last_step in self.series.items()
            if each in points or each not in short
        ]
        return [part for part in parts if len(part)]


def curves(tx: Connection, job_id: JobId, wanted: frozenset[str]) -> list[CountedCurve]:
    """Return metrics of a job, each of the lowest rank that reports it."""
    series = _Series.all(tx.execute(_series(job_id)))
    named = [row for row in series if row.name in wanted]
    lowest = {name: min(row.rank for row in named if row.name == name) for name in {row.name for row in named}}
    counting, limits = _counting(series), _limits(tx, series)
    return [
        CountedCurve(
            job=job_id,
            name=name,
            series={
                row.id: limits[row.name, row.rank][row.attempt]
                for row in named
                if row.id in counting and (row.name, row.rank) == (name, rank)
            },
            rolled_seq={row.id: row.rolled_seq for row in named},
        )
        for name, rank in sorted(lowest.items())
    ]


def _cursor(text: str | None) -> MetricsCursor | None:
    try:
        return MetricsCursor.parse(text) if text else None
    except ValueError as error:
        raise field_problem("since", NO_CURSOR) from error


def _series(job_id: JobId) -> Any:
    return (
        select(
            MetricSeries.id,
            MetricSeries.attempt_id,
            MetricSeries.attempt,
            MetricSeries.stream,
            MetricSeries.rank,
            MetricSeries.name,
            MetricSeries.rolled_seq,
            Attempt.resumed_from_step,
        )
        .join(Attempt, Attempt.id == MetricSeries.attempt_id)
        .join(Job, Job.id == MetricSeries.job_id)
        .where(MetricSeries.job_id == job_id, Job.discarded_us.is_(None))
        .order_by(MetricSeries.attempt, MetricSeries.id)
    )


def _streams(series: Iterable[_Series]) -> list[list[_Series]]:
    """Return the series of each process, in the order of attempts."""
    streams: defaultdict[tuple[str, str], list[_Series]] = defaultdict(list)
    for row in series:
        streams[row.attempt_id, row.stream].append(row)
    return list(streams.values())


def _limits(tx: Connection, series: Sequence[_Series]) -> dict[tuple[str, int], dict[int, int | None]]:
    """Return the steps up to which each attempt's points of a curve count, as `last_steps`.

    An attempt that restored no checkpoint may go on by itself, from a file of its own: its curve begins before the
    first step that it has logged.
    """
    resumed = {row.attempt: row.resumed_from_step for row in series}
    unknown = [row.id for row in series if row.resumed_from_step is None] if len(resumed) > 1 else []
    first = {row.id: row.step for row in tx.execute(_FIRST.where(MetricSeries.id.in_(unknown)))} if unknown else {}
    known: dict[int, int | None] = {number: step for number, step in resumed.items() if step is not None}
    began: defaultdict[tuple[str, int], dict[int, int | None]] = defaultdict(known.copy)
    for row in series:
        curve, step = began[row.name, row.rank], first.get(row.id)
        if row.attempt not in known:
            before = curve.get(row.attempt)
            curve[row.attempt] = before if step is None else step - 1 if before is None else min(before, step - 1)
    return {curve: last_steps(attempts) for curve, attempts in began.items()}


def _counting(series: Iterable[_Series]) -> set[int]:
    """Return ids of the series that count: what a job logs with two trackers, or reports as well, is one curve."""
    groups: defaultdict[tuple[str, int, str], list[_Series]] = defaultdict(list)
    for row in series:
        groups[row.attempt_id, row.rank, row.name].append(row)
    counting = set[int]()
    for rows in groups.values():
        first = min(tracked.precedence(row.stream) for row in rows)
        counting |= {row.id for row in rows if tracked.precedence(row.stream) == first}
    return counting


_EARLIER = aliased(MetricPoint)
_FIRST = select(MetricSeries.id, MetricPoint.step).join_from(
    MetricSeries,
    MetricPoint,
    (MetricPoint.series_id == MetricSeries.id)
    & (
        MetricPoint.seq == select(func.min(_EARLIER.seq)).where(_EARLIER.series_id == MetricSeries.id).scalar_subquery()
    ),
)


def _points(tx: Connection, series_ids: Collection[int], after: int, within: MetricsRange) -> Rows:
    if not series_ids:
        return np.empty(0, rollups.POINT)
    query = (
        select(*rollups.COLUMNS)
        .where(MetricPoint.series_id.in_(series_ids), MetricPoint.seq > after, *within.where())
        .order_by(MetricPoint.series_id, MetricPoint.seq)
    )
    return rollups.rows(tx, query)


def _columns(rows: Rows) -> Iterable[tuple[int, Points]]:
    """Yield the points of each series."""
    ids, starts = np.unique(rows["series"], return_index=True)
    for series_id, own in zip(ids.tolist(), np.split(rows, starts[1:]), strict=False):
        yield series_id, Points(own["step"], own["time_us"], own["value"], own["special"])


def _resource(name: str, rank: int, points: Points, max_points: int | None) -> api.Series:
    thinned = points if max_points is None else thin(points, max_points)
    return api.Series.model_construct(name=name, rank=rank, points=thinned.rows())
