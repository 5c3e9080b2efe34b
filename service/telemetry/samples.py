"""Reading of the samples of processors, memory and GPUs that nodes take."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Float, Select, and_, cast, func, select, true, tuple_

from service.db.engine import Database
from service.db.models import Attempt, Job, Member, Node, Sample
from service.errors import field_problem, not_found
from service.telemetry.series import CURSOR_WITH_RANGE, NO_CURSOR, Points, int64, thin
from torchyard import api
from torchyard.ids import AttemptId, JobId

#: Samples that are read for each point that is shown.
SAMPLES_PER_POINT = 4
#: Samples that are read for each bucket: at 500 of them every one of nine hours.
SAMPLES_PER_BUCKET = 32


@dataclass(frozen=True, kw_only=True)
class SamplesQuery:
    """Part and form of an answer."""

    max_points: int
    """Points of a series at most."""
    since: str | None = None
    """`cursor` of an earlier answer: only what is newer."""
    buckets: int | None = None
    """Instead of fewer points: more samples in the range than this are told in so many buckets."""
    start: float | None = None
    end: float | None = None
    """Range in unix time, both ends included; None: open."""

    @property
    def is_all(self) -> bool:
        return self.start is None and self.end is None


def of_job(db: Database, job_id: JobId, query: SamplesQuery) -> api.Metrics:
    """Return the telemetry series of the job's processes; a point's step is its time in whole seconds.

    Of a job that has run on several nodes, each name begins with its node's.
    """
    if query.since and not query.is_all:
        raise field_problem("since", CURSOR_WITH_RANGE)
    with db.read() as tx:
        if tx.scalar(select(Job.id).where(Job.id == job_id)) is None:
            raise not_found("job", job_id)
        several = len({row.node for row in tx.execute(_members(job_id))}) > 1
        return _read(tx, samples_of(job_id), query, several=several)


def samples_of(job_id: JobId) -> ColumnElement[bool]:
    """Return the condition of a job's samples, by node and attempt: their key begins with these, in this order."""
    return tuple_(Sample.node, Sample.attempt_id).in_(_members(job_id))


def _members(job_id: JobId) -> Select[str, AttemptId]:
    query = select(Member.node, Member.attempt_id).join(Attempt, Attempt.id == Member.attempt_id)
    return query.where(Attempt.job_id == job_id)


def of_node(db: Database, node: str, query: SamplesQuery) -> api.Metrics:
    """Return the telemetry series of the node itself; a point's step is its time in whole seconds."""
    with db.read() as tx:
        if tx.scalar(select(Node.name).where(Node.name == node)) is None:
            raise not_found("node", node)
        return _read(tx, (Sample.node == node) & (Sample.attempt_id == ""), query, several=False)


def _read(tx: Connection, where: Any, query: SamplesQuery, *, several: bool) -> api.Metrics:
    """Return the series of samples; of `several` nodes each name begins with its node's."""
    after = _moment(query.since)
    matching = and_(where, Sample.time_us > after, *_in_range(query))
    edges = tx.execute(select(func.count(), func.min(Sample.time_us), func.max(Sample.time_us)).where(matching))
    count, oldest, newest = edges.one()
    if query.buckets is not None and count > query.buckets:
        series = _bucketed(tx, matching, (count, oldest, newest), query.buckets, several)
    else:
        series = _points(tx, matching, count, query.buckets or query.max_points, several)
    # What lies outside of a range has not been read, so it is no place to go on from.
    return api.Metrics(
        series=series, cursor=str(newest or max(0, after)) if query.is_all else "0", reset=query.since is None
    )


def _in_range(query: SamplesQuery) -> list[ColumnElement[bool]]:
    return [
        *([] if query.start is None else [Sample.time_us >= int64(query.start * 1e6, ceil)]),
        *([] if query.end is None else [Sample.time_us <= int64(query.end * 1e6, floor)]),
    ]


def _bucketed(
    tx: Connection, matching: Any, edges: tuple[int, int, int], parts: int, several: bool
) -> list[api.Series]:
    """Return the series in equal parts of the time between the edges, added up by the database.

    `edges` has the number of samples and the first and last time. All samples count where a part has
    `SAMPLES_PER_BUCKET` on average, else evenly chosen ones: of a week there are hundreds of thousands.
    """
    count, oldest, newest = edges
    numbered = _numbered(matching, max(1, count // (parts * SAMPLES_PER_BUCKET)))
    each = func.json_each_text if tx.dialect.name == "postgresql" else func.json_each
    sampled = each(numbered.c.sampled).table_valued("key", "value")
    time_us, value = numbered.c.time_us, cast(sampled.c.value, Float)
    place = (time_us - oldest) // -(-(newest - oldest + 1) // parts)  # multiplied, the years of a wrong clock overflow
    summary = (func.min(time_us), func.max(time_us), func.count(), func.min(value), func.avg(value), func.max(value))
    rows = tx.execute(
        select(numbered.c.node, sampled.c.key, place.label("part"), *summary)
        .select_from(numbered)
        .join(sampled, true())
        .group_by(numbered.c.node, sampled.c.key, "part")
        .order_by(numbered.c.node, sampled.c.key, "part")
    )
    found: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for node, name, _, *bucket in rows:
        found[f"{node}/{name}" if several else name].append(tuple(bucket))
    return [_series(name, found[name]) for name in sorted(found)]


def _numbered(matching: Any, every: int) -> Any:
    """Return a subquery of the samples at every `every`-th place."""
    place = func.row_number().over(order_by=Sample.time_us)
    columns = (Sample.time_us, Sample.node, Sample.values.label("sampled"), place.label("place"))
    numbered = select(*columns).where(matching).subquery()
    chosen = select(numbered.c.time_us, numbered.c.node, numbered.c.sampled).where(numbered.c.place % every == 0)
    return chosen.subquery()


def _series(name: str, buckets: Sequence[tuple[Any, ...]]) -> api.Series:
    first_us, last_us, counts, least, mean, most = (list(column) for column in zip(*buckets, strict=True))
    columns = api.Buckets.model_construct(
        first_step=[time // 1_000_000 for time in first_us],
        last_step=[time // 1_000_000 for time in last_us],
        first_time=[time / 1e6 for time in first_us],
        last_time=[time / 1e6 for time in last_us],
        count=counts,
        min=least,
        mean=mean,
        max=most,
    )
    return api.Series.model_construct(name=name, rank=0, points=[], buckets=columns)


def _points(tx: Connection, matching: Any, count: int, max_points: int, several: bool) -> list[api.Series]:
    chosen = _numbered(matching, max(1, count // (max_points * SAMPLES_PER_POINT)))
    rows = tx.execute(select(chosen.c.time_us, chosen.c.node, chosen.c.sampled).order_by(chosen.c.time_us))
    series: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for time_us, node, values in rows:
        prefix = f"{node}/" if several else ""
        for name, value in values.items():
            series[prefix + name].append((time_us, float(value)))
    return [_thinned(name, series[name], max_points) for name in sorted(series)]


def _moment(text: str | None) -> int:
    if text is None:
        return -1
    if not text.isdecimal() or len(text) > 18:
        raise field_problem("since", NO_CURSOR)
    return int(text)


def _thinned(name: str, points: Sequence[tuple[int, float]], max_points: int) -> api.Series:
    times = np.array([time_us for time_us, _ in points], np.int64)
    values = np.array([value for _, value in points], np.float64)
    all_points = Points(times // 1_000_000, times, values, np.zeros(len(points), np.int64))
    return api.Series.model_construct(name=name, rank=0, points=thin(all_points, max_points).rows())
