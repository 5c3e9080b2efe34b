"""Metrics of many jobs on one grid, so that they can be drawn in one chart."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, Subquery, func, literal, select
from sqlalchemy.orm import aliased

from service.db.engine import Database
from service.db.models import Job, MetricPoint, MetricSeries
from service.infra.lru_cache import LruCache
from service.telemetry import metrics
from service.telemetry.blocks import NOTHING, Axis, Blocks, merged, of_points
from service.telemetry.metrics import CountedCurve, MetricsRange
from service.telemetry.series import Points, join
from torchyard import api
from torchyard.ids import JobId

#: Curves that are remembered: some 20 kB each.
_REMEMBERED = 2_000


@dataclass(frozen=True, kw_only=True)
class CurvesQuery:
    """Choice of metrics of jobs, in about `parts` parts of what is in the range."""

    jobs: Sequence[JobId]
    names: frozenset[str]
    parts: int
    axis: Axis = Axis.STEP
    start: float | None = None
    end: float | None = None
    """Steps, or seconds since each job's start."""
    rough: bool = False
    """A few points of each part, found without reading all: a first look."""

    @property
    def is_all(self) -> bool:
        return self.start is None and self.end is None


class CurveCache(LruCache[tuple[object, ...], api.Curve]):
    """Curves that were read; those of jobs that have reported since are read anew."""

    def __init__(self) -> None:
        super().__init__(_REMEMBERED)


def read(db: Database, cache: CurveCache, query: CurvesQuery) -> api.Curves:
    """Return the curves that the jobs have; they must exist."""
    with db.read() as tx:
        found = [curve for job in query.jobs for curve in metrics.curves(tx, job, query.names)]
        origins = _origins(tx, query)
        sampled = _samples(tx, found, query.parts if query.rough else 1)
        width = _width(query, found, sampled, origins)
        curves = []
        tags = {} if query.rough else {job: metrics.tag(tx, job) for job in query.jobs}
        for curve in found:
            if query.rough:
                points = sampled.get((curve.job, curve.name))
                curves.append(_rough(curve, points, width, query.axis, origins[curve.job]))
                continue
            key = (tags[curve.job], curve.name, query.axis, width)
            known = cache.get(key) if query.is_all else None
            made = known or _exact(tx, curve, query, width, origins[curve.job])
            if query.is_all:
                cache.put(key, made)
            curves.append(made)
    return api.Curves.model_construct(width=width, rough=query.rough, curves=curves)


def _origins(tx: Connection, query: CurvesQuery) -> dict[JobId, int]:
    """Return the places from which the axis counts, by job: its start in microseconds, or step 0."""
    rows = tx.execute(select(Job.id, func.coalesce(Job.started_us, 0).label("us")).where(Job.id.in_(query.jobs)))
    return {row.id: row.us if query.axis is Axis.TIME else 0 for row in rows}


def _samples(tx: Connection, found: Sequence[CountedCurve], count: int) -> dict[tuple[JobId, str], Points]:
    """Return about `count` points of each curve and its last, at equal distances in the order they came."""
    owner = {series: curve for curve in found for series in curve.series}
    if not owner:
        return {}
    rows = tx.execute(_sampled(tuple(owner), count)).all()
    columns = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4)
    values = np.array([row.value or 0.0 for row in rows], np.float64)
    parts: dict[tuple[JobId, str], list[Points]] = {}
    for series, curve in owner.items():
        own = np.unique(np.flatnonzero(columns[:, 0] == series))
        points = Points(columns[own, 1], columns[own, 2], values[own], columns[own, 3]).until(curve.series[series])
        parts.setdefault((curve.job, curve.name), []).append(points)
    return {key: join(points) for key, points in parts.items()}


def _sampled(series: Sequence[int], count: int) -> Select[*tuple[Any, ...]]:
    """Select points by seeking each in the primary key, so that most rows are never read."""
    ends = _ends(series)
    first = select(literal(0).label("n")).cte("places", recursive=True)
    places = first.union_all(select(first.c.n + 1).where(first.c.n < count))
    later = aliased(MetricPoint)
    target = ends.c.first + (ends.c.last - ends.c.first) * places.c.n / count
    seek = select(func.min(later.seq)).where(later.series_id == ends.c.id, later.seq >= target).scalar_subquery()
    return (
        select(MetricPoint.series_id, MetricPoint.step, MetricPoint.time_us, MetricPoint.special, MetricPoint.value)
        .select_from(ends)
        .join(places, literal(value=True))
        .join(MetricPoint, (MetricPoint.series_id == ends.c.id) & (MetricPoint.seq == seek))
        .distinct()
        .order_by(MetricPoint.series_id, MetricPoint.step)
    )


def _ends(series: Sequence[int]) -> Subquery:
    """Select the first and last line of each series."""
    own = MetricPoint.series_id == MetricSeries.id
    first, last = (
        select(end(MetricPoint.seq)).where(own).correlate(MetricSeries).scalar_subquery()
        for end in (func.min, func.max)
    )
    query = select(MetricSeries.id.label("id"), first.label("first"), last.label("last"))
    return query.where(MetricSeries.id.in_(series)).subquery()


def _width(
    query: CurvesQuery,
    found: Iterable[CountedCurve],
    sampled: dict[tuple[JobId, str], Points],
    origins: dict[JobId, int],
) -> float:
    """Return the width of a part: a power of two, so that a curve is read once for charts that differ a little."""
    low, high = query.start, query.end
    for curve in found:
        points = sampled.get((curve.job, curve.name))
        if points is not None and len(points):
            places = _places(points, query.axis, origins[curve.job])
            low = min(places.min(), low if low is not None else np.inf) if query.start is None else query.start
            high = max(places.max(), high if high is not None else -np.inf) if query.end is None else query.end
    span = min(float((high or 0) - (low or 0)), sys.float_info.max)
    least = 1.0 if query.axis is Axis.STEP else 2.0**-10
    width = float(2.0 ** ceil(np.log2(span / query.parts))) if span > 0 else least
    return max(width, least)


def _places(points: Points, axis: Axis, origin: int) -> NDArray[np.float64]:
    if axis is Axis.STEP:
        return points.steps.astype(np.float64)
    return (points.times_us - origin) / 1e6


def _exact(tx: Connection, curve: CountedCurve, query: CurvesQuery, width: float, origin: int) -> api.Curve:
    """Return the curve of all of its points in the range."""
    shift = origin / 1e6 if query.axis is Axis.TIME else 0
    start, end = (None if each is None else each + shift for each in (query.start, query.end))
    parts = curve.blocks(tx, MetricsRange(axis=query.axis, start=start, end=end))
    blocks = [part.blocks(query.axis, width) for part in parts]
    last = None
    if parts:
        newest = max(reversed(parts), key=lambda part: part.last_step)
        last = newest.last_point().rows()[0][2]
    return _in_parts(curve, np.concatenate([NOTHING, *blocks]), last, width, query.axis, origin)


def _rough(curve: CountedCurve, points: Points | None, width: float, axis: Axis, origin: int) -> api.Curve:
    """Return the curve of some of its points."""
    if points is None or not len(points):
        return _in_parts(curve, NOTHING, None, width, axis, origin)
    return _in_parts(curve, of_points(points), points.rows()[-1][2], width, axis, origin)


def _in_parts(
    curve: CountedCurve, blocks: Blocks, last: api.Number | None, width: float, axis: Axis, origin: int
) -> api.Curve:
    numbers = np.floor(axis.middles(blocks, origin) / width).astype(np.int64)
    parts, numbers = merged(blocks, numbers)
    finite = parts["special"] == 0
    return api.Curve.model_construct(
        job=curve.job,
        name=curve.name,
        number=numbers[finite].tolist(),
        count=parts["count"][finite].tolist(),
        min=parts["least"][finite].tolist(),
        mean=parts["mean"][finite].tolist(),
        max=parts["most"][finite].tolist(),
        special=np.unique(numbers[~finite]).tolist(),
        last=last,
    )
